package redact

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariablesThatHoldSecretsAreKnownByTheirNames(t *testing.T) {
	const v = "zq81-xyzw"
	for variable, want := range map[string]string{
		"ANTHROPIC_API_KEY=" + v: v, "GH_TOKEN=" + v: v, "CLIENT_SECRET=" + v: v, "PGPASSWORD=" + v: v,
		"MYSQL_PWD=" + v: v, "DbPassword=" + v: v, "AWS_ACCESS_KEY_ID=" + v: v, "AWS_SECRET_ACCESS_KEY=" + v: v,
		"AWS_SESSION_TOKEN=" + v: v, "npm_config__auth=" + v: v, "SSH_PASSPHRASE=" + v: v, "GITLAB_PAT=" + v: v,
		"APIKEY=" + v: v, "SLACK_WEBHOOK_URL=https://x/" + v: "https://x/" + v, "TOKEN= " + v + " ": v, "DOCKER_AUTH_CONFIG=" + v: v,
		"KEY=a=b=c": "a=b=c",

		"PATH=" + v: "", "PWD=" + v: "", "OLDPWD=" + v: "", "HOME=" + v: "", "SSH_AUTH_SOCK=" + v: "", "GOOGLE_PUBLIC_KEY=" + v: "",
		"AWS_REGION=" + v: "", "AWS_PROFILE=" + v: "", "AWS_WEB_IDENTITY_TOKEN_FILE=" + v: "", "MAX_TOKENS=" + v: "",
		"TOKENIZERS_PARALLELISM=" + v: "", "KEYBOARD=" + v: "", "SSH_ASKPASS=" + v: "", "GITHUB_PATH=" + v: "", "SECRET_NAME=" + v: "",
		"API_KEY=": "", "API_KEY": "", "": "", "=": "",
	} {
		var wanted []Secret
		if want != "" {
			name := variable[:len(variable)-len(want)-1]
			if variable == "TOKEN= "+v+" " {
				name = "TOKEN"
			}
			if variable == "SLACK_WEBHOOK_URL=https://x/"+v {
				name = "SLACK_WEBHOOK_URL"
			}
			wanted = []Secret{{name, want}}
		}
		if diff := cmp.Diff(wanted, FromEnviron([]string{variable})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", variable, diff)
		}
	}
}

func TestPasswordsInsideOfValuesAreTaken(t *testing.T) {
	for value, want := range map[string][]string{
		"postgres://app:p4ss@db:5432/app":                  {"p4ss"},
		"postgres://app:p%40ss@db:5432/app":                {"p%40ss", "p@ss"},
		"redis://:p4ss@cache:6379/0":                       {"p4ss"},
		"mysql://app:p@ss/w#rd@db/app":                     {"p@ss/w#rd"},
		"https://x-access-token:abc@github.example/a/b":    {"abc"},
		"host=db user=app password=p4ss sslmode=require":   {"p4ss"},
		"host=db password='p4 ss' user=app":                {"p4 ss"},
		"Server=db;User Id=app;Password=p4ss;Encrypt=true": {"p4ss"},
		"postgres://db:5432/app@v1":                        nil,
		"https://example.com/a:b@c":                        nil,
		"https://app@example.com/":                         nil,
		"https://example.com:8080":                         nil,
		"user@example.com":                                 nil,
		"nopassword=1":                                     nil,
		"password=":                                        nil,
	} {
		var wanted []Secret
		for _, w := range want {
			wanted = append(wanted, Secret{"DATABASE_URL", w})
		}
		if diff := cmp.Diff(wanted, FromEnviron([]string{"DATABASE_URL=" + value})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

func TestOnlyThePasswordOfASecretURLIsASecret(t *testing.T) {
	got := FromEnviron([]string{"DB_SECRET=postgres://app:p4ss@db/app", "DB_TOKEN=host=db password=p4ss"})
	want := []Secret{{"DB_SECRET", "p4ss"}, {"DB_TOKEN", "p4ss"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
