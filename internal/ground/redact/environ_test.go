package redact

import (
	"strings"
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
		"KEY=a=b=c": "a=b=c", "dbPwd=" + v: v, "githubToken=" + v: v, "Api_Key=" + v: v, "apiKey=" + v: v, "MyAccessKey=" + v: v, "APIKey=" + v: v,
		"client-Secret=" + v: v, "npm_config_//host/:_authToken=" + v: v,

		"PATH=" + v: "", "PWD=" + v: "", "OLDPWD=" + v: "", "HOME=" + v: "", "SSH_AUTH_SOCK=" + v: "", "GOOGLE_PUBLIC_KEY=" + v: "",
		"AWS_REGION=" + v: "", "AWS_PROFILE=" + v: "", "AWS_WEB_IDENTITY_TOKEN_FILE=" + v: "", "MAX_TOKENS=" + v: "",
		"TOKENIZERS_PARALLELISM=" + v: "", "KEYBOARD=" + v: "", "SSH_ASKPASS=" + v: "", "GITHUB_PATH=" + v: "", "SECRET_NAME=" + v: "",
		"API_KEY=": "", "API_KEY": "", "": "", "=": "", "Pwd=" + v: "", "tokenFile=" + v: "", "publicKey=" + v: "", "HotkeyMap=" + v: "",
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
		"Server=db;Uid=app;Pwd=p4ss;Encrypt=true":          {"p4ss"},
		"Pwd=p4ss;Server=db":                               {"p4ss"},
		"DRIVER={x};UID=app;PWD=\"p4;ss\"":                 {"p4;ss"},
		"https://db.example/?user=app&pwd=p4ss&x=1":        {"p4ss"},
		"cwd=/a;oldpwd=/b":                                 nil,
		"oldpwd=/b;pwd=p4ss":                               {"p4ss"},
		"Application Name=Ⱥ;Pwd=p4ss;x=y":                  {"p4ss"},
		"pwd":                                              nil,
		"postgres://db:5432/app@v1":                        nil,
		"https://example.com/a:b@c":                        nil,
		"https://app@example.com/":                         nil,
		"https://example.com:8080":                         nil,
		"user@example.com":                                 nil,
		"nopassword=1":                                     nil,
		"password=":                                        nil,
		"password= user=app":                               nil,
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

func TestEachWordThatPromisesASecretIsKnown(t *testing.T) {
	const v = "zq81-xyzw"
	for word := range strings.FieldsSeq(`KEY KEYS TOKEN PASS PWD PAT CREDENTIAL CREDENTIALS CREDS AUTH JWT COOKIE BEARER WEBHOOK PASSCODE
		SECRET PASSWORD PASSWD PASSPHRASE APIKEY AUTHTOKEN ACCESSKEY PRIVATEKEY MYSECRETS XPASSWORD1`) {
		for _, name := range []string{"MY_" + word, "my." + word + ".x"} {
			if got := FromEnviron([]string{name + "=" + v}); len(got) != 1 || got[0] != (Secret{name, v}) {
				t.Errorf("%s: %+v, want its value", name, got)
			}
		}
	}
	for word := range strings.FieldsSeq(`PUBLIC PUB FILE FILES PATH DIR SOCK SOCKET NAME TYPE USER USERNAME HOST PORT REGION TTL LENGTH LIMIT COUNT MODE METHOD ALGORITHM ENABLED`) {
		if got := FromEnviron([]string{"API_KEY_" + word + "=" + v}); len(got) != 0 {
			t.Errorf("API_KEY_%s: %+v, want nothing", word, got)
		}
	}
	for _, name := range []string{"PUB_KEY", "PUBLIC_TOKEN", "pwd"} {
		if got := FromEnviron([]string{name + "=" + v}); len(got) != 0 {
			t.Errorf("%s: %+v, want nothing", name, got)
		}
	}
}
