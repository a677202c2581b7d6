package policy

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// foundBy are files that each framework finds or reads when nobody configures
// it, at least one for each of its globs.
var foundBy = map[string]string{
	"go test":              "a_test.go pkg/testdata/x.txt pkg/out.golden",
	"pytest":               "test_a.py src/a_test.py conftest.py pytest.ini .pytest.ini pytest.toml tox.ini .coveragerc conftest.pyc .pytest.toml tox.toml",
	"unittest":             "test.py src/tests.py src/testapp.py",
	"nose2":                "testx.py nose2.cfg unittest.cfg",
	"nox":                  "noxfile.py",
	"behave":               "features/a.feature behave.ini .behaverc",
	"node --test":          "test.js src/test.mjs src/test.ts a-test.js a-test.cjs a_test.mts test-a.js src/test-a.ts a.test.js test/a.js src/test.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee}",
	"jest":                 "src/__tests__/a.js a.test.tsx a.spec.jsx test.jsx spec.ts src/__mocks__/fs.js a.snap jest.config.ts jest.setup.js jest.preset.js src/test.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee} src/spec.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee} src/__snapshots__/a.txt jest-setup.ts setup-jest.ts setupJest.ts jest-e2e.config.js",
	"Create React App":     "src/setupTests.js src/setupTests.ts src/setup-tests.ts",
	"vitest":               "a.test.ts a.spec.mts a.test-d.ts vitest.config.ts vitest.workspace.ts vitest.setup.ts a.bench.ts vitest-setup.ts vitest.e2e.config.ts",
	"mocha":                "test/a.js .mocharc.yml test/mocha.opts",
	"ava":                  "test.js src/test.js test-a.js a.spec.js tests/a.js ava.config.mjs src/test.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee} a.test.js test/a.js __tests__/a.js",
	"jasmine":              "spec/a.js src/userSpec.js src/userspec.js src/spec.js spec/support/jasmine.json jasmine.mjs src/userSpec.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee}",
	"karma":                "karma.conf.js karma-ci.conf.js",
	"playwright":           "a.spec.ts a.test.mjs playwright.config.ts playwright-ct.config.ts",
	"cypress":              "cypress/e2e/a.cy.js src/a.cy.tsx cypress/support/e2e.ts cypress.config.ts cypress.json src/a.cy.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee} cypress.env.json",
	"webdriverio":          "wdio.conf.ts wdio.ci.conf.ts",
	"testcafe":             ".testcaferc.json",
	"tap":                  ".taprc tests/a.js test/a.js __tests__/a.js a.test.js",
	"storybook":            ".storybook/test-runner.ts",
	"coverage of Node":     ".nycrc.json .c8rc nyc.config.js stryker.conf.json",
	"ember":                "tests/unit/a-test.js app/a-test.ts testem.js app/a-test.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee}",
	"deno test":            "test.ts a_test.ts a.test.tsx __tests__/a.ts src/test.{js,mjs,cjs,jsx,ts,mts,cts,tsx,coffee}",
	"bun test":             "a.test.ts a_test.ts a.spec.ts a_spec.ts",
	"rspec":                "lib/a_spec.rb spec/a.rb .rspec spec_helper.rb rails_helper.rb .rspec-local",
	"minitest":             "test_a.rb a_test.rb a_spec.rb test_helper.rb minitest_helper.rb",
	"cucumber":             "features/a.feature features/step_definitions/a.rb cucumber.yml cucumber.mjs cucumber.json",
	"cargo test":           "tests/a.rs src/tests.rs src/a/tests.rs src/test.rs src/a_tests.rs .config/nextest.toml src/a_test.rs",
	"insta":                "src/snapshots/a.snap src/snapshots/a.snap.new",
	"maven surefire":       "src/TestUser.java src/UserTest.java src/UserTests.java src/UserTestCase.java",
	"maven failsafe":       "src/ITUser.java src/UserIT.java src/UserITCase.java",
	"gradle":               "app/src/test/java/A.java app/src/integrationTest/java/A.java app/src/testFixtures/A.java app/src/androidTest/A.kt app/src/testDebug/A.java app/src/testRelease/A.java src/main/resources/junit-platform.properties testng-ci.xml",
	"kotest":               "UserTest.kt UserSpec.kt UserTests.kt UserTest.kts kotest.properties",
	"spock":                "UserSpec.groovy UserTest.groovy UserSpecification.groovy SpockConfig.groovy UserSpec.java",
	"scalatest":            "UserSpec.scala UserTest.scala UserSuite.scala UserTests.scala",
	"dotnet test":          "UserTests.cs UserTest.fs App.Tests/Helper.cs ci.runsettings xunit.runner.json UserTest.cs UserTests.fs UserTest.vb UserTests.vb UserSpec.cs UserSpecs.cs App.Test/Helper.cs testconfig.json",
	"phpunit":              "UserTest.php a.phpt phpunit.xml phpunit.xml.dist phpunit.dist.xml",
	"pest":                 "tests/Feature/A.php Pest.php UserTest.php",
	"phpspec":              "spec/A.php UserSpec.php phpspec.yml .phpspec.yml",
	"behat":                "behat.yml.dist features/a.feature",
	"codeception":          "UserCest.php codeception.yml UserCept.php codeception.dist.yml tests/unit.suite.yml",
	"ExUnit":               "test/a_test.exs lib/a_test.exs test/test_helper.exs",
	"erlang":               "user_SUITE.erl user_tests.erl user_SUITE_data/a.txt test.spec",
	"XCTest":               "Tests/A.swift UserTests.swift UserSpec.swift app.xctestplan UserTest.swift",
	"bats":                 "a.bats setup_suite.bash test_helper.bash",
	"shellspec":            "a_spec.sh .shellspec spec/a.sh",
	"shunit2":              "a_test.sh test_a.sh",
	"ctest and googletest": "a_test.cc a_unittest.cc test_a.cpp UserTest.cpp CTestCustom.cmake UserTests.cpp user_tests.cc CTestConfig.cmake CTestTestfile.cmake",
	"dart and flutter":     "a_test.dart integration_test/a.dart dart_test.yaml flutter_test_config.dart test_driver/a.dart",
	"hspec":                "UserSpec.hs .hspec",
	"crystal spec":         "a_spec.cr spec_helper.cr",
	"clojure.test":         "a_test.clj a_test.cljs tests.edn",
	"testthat":             "tests/testthat/test-a.R test-a.R test_a.R testthat.R",
	"busted":               "a_spec.lua .busted spec/a.lua",
	"prove":                "t/a.t lib/a.t xt/a.t .proverc",
	"julia":                "runtests.jl test/a.jl",
	"foundry":              "A.t.sol",
	"Pester":               "A.Tests.ps1 PesterConfiguration.psd1",
	"zig":                  "a_test.zig test_a.zig",
	"lit":                  "lit.cfg.py lit.site.cfg.py.in lit.local.cfg",
	"coverage services":    "codecov.yml .codecov.yml .coveralls.yml",
	"conventions":          "src/fixtures/a.json src/__fixtures__/a.json run_tests.py run_tests.sh run-tests.sh runTests.js a-spec.rb a-spec.js a_spec.js UserSpec.php UserSpec.ts e2e/a.ts A.verified.txt test/a.txt tests/a.txt run_test.sh run-test.sh A.approved.txt testsetup.ts test.setup.ts tests.setup.ts TestHelper.kt",
}

func TestAttack056NamesThatFrameworksTakeByDefaultAreProtectedAndTakenFromBase(t *testing.T) {
	s := scopeOf(t, "**/*", "*", "src/**", "lib/**", "**/*.*")
	for _, f := range frameworks {
		if foundBy[f.name] == "" {
			t.Errorf("%s: no file of it is tried", f.name)
		}
		var paths []string
		for glob := range strings.FieldsSeq(foundBy[f.name]) {
			some, _ := Alternatives(glob)
			paths = append(paths, some...)
		}
		for _, path := range paths {
			own := slices.ContainsFunc(slices.Concat(f.tests, f.configs), func(glob string) bool { return match(foldName(glob), foldName(path)) })
			if v := s.Judge(path); !own || v.Allowed || v.Code != CodeProtected {
				t.Errorf("%s: Judge(%q) = %+v, its own glob: %v; want protected", f.name, path, v, own)
			}
			if !Judging(path) {
				t.Errorf("%s: Judging(%q) is false", f.name, path)
			}
		}
		for _, glob := range slices.Concat(f.tests, f.configs) {
			taken := func(path string) bool { return match(foldName(glob), foldName(path)) }
			if !slices.ContainsFunc(paths, taken) {
				t.Errorf("%s: %q takes no file that is tried: add one to foundBy", f.name, glob)
			}
		}
	}
	for name := range foundBy {
		if !slices.ContainsFunc(frameworks, func(f framework) bool { return f.name == name }) {
			t.Errorf("there is no framework %q", name)
		}
	}
}

func TestAttack056WhatPythonLoadsByItselfIsProtectedInEachOfItsForms(t *testing.T) {
	s := scopeOf(t, "**/*", "*", "src/**", "**/*.py", "**/*.so")
	for _, path := range []string{
		"sitecustomize.py", "sitecustomize.pyc", "sitecustomize.so", "src/sitecustomize.cpython-313-x86_64-linux-gnu.so", "sitecustomize/__init__.py", "src/sitecustomize/x.so",
		"usercustomize.py", "usercustomize.pyc", "usercustomize/__init__.py", "a.pth", "__pycache__/sitecustomize.cpython-313.pyc", "src/__pycache__/app.cpython-313.pyc",
	} {
		if v := s.Judge(path); v.Allowed || v.Code != CodeProtected || !Judging(path) {
			t.Errorf("Judge(%q) = %+v, Judging = %v, want protected", path, v, Judging(path))
		}
	}
}

// Names that a glob of tests could take by chance.
func TestOrdinarySourceIsNoTest(t *testing.T) {
	s := scopeOf(t, "**/*", "*", "src/**", "docs/**")
	for path := range strings.FieldsSeq(`
		main.go cmd/app/main.go internal/spec/spec.go internal/testing.go internal/latest.go pkg/contest/contest.go api/jobspec.go api/JobSpec.go pkg/golden.go
		src/app.py src/latest.py src/attest.py src/specs.py src/contest/models.py src/inspector.py src/spec.py src/PodSpec.py manage.py src/fixture.py
		src/index.js src/app.tsx src/latest.ts src/contest.ts src/tester.js src/inspect.js src/special.js src/testimonials.tsx src/spectrum.ts src/request.ts
		src/Audit.java src/Item.java src/Iterator.java src/Limit.java src/Latest.java src/Contest.java src/Submit.java src/Unit.java src/Testament.kt src/Special.java
		src/Latest.kt src/Contest.cs src/Request.php src/Manifest.swift src/latest/index.ts src/testing/clock.ts src/Specifications.kt
		lib/app.rb lib/spec.rb lib/latest.rb src/lib.rs src/latest.rs src/attest.rs lib/app.ex lib/test.ex src/core.clj src/a.c src/contest.cpp include/spec.h
		docs/test-plan.md docs/api-spec.md docs/load-test.md docs/testing.md docs/user_test.rst README.md docs/how.test.md
		api/PodSpec.go api/PodSpec.proto src/PodSpec.rs src/PodSpec.c include/PodSpec.h src/PodSpec.cc src/PodSpec.cpp include/PodSpec.hpp api/PodSpec.yml api/PodSpec.json
		api/PodSpec.toml docs/PodSpec.md api/PodSpec.yaml api/openapi.yaml api/spec.json config/app.toml t.go e2e.go fixtures.go cypress.go`) {
		if v := s.Judge(path); !v.Allowed || Judging(path) {
			t.Errorf("Judge(%q) = %+v, Judging = %v, want allowed", path, v, Judging(path))
		}
	}
}

func TestEachFrameworkSaysWhereItsDefaultsAreWritten(t *testing.T) {
	for _, f := range frameworks {
		if f.name == "conventions" {
			continue
		}
		if u, err := url.Parse(f.source); err != nil || u.Scheme != "https" || u.Host == "" {
			t.Errorf("%s: source %q is not an address", f.name, f.source)
		}
		if len(f.tests)+len(f.configs) == 0 {
			t.Errorf("%s has no globs", f.name)
		}
	}
}

func TestLetterCaseCountsWhereACapitalLetterTellsATest(t *testing.T) {
	s := scopeOf(t, "**/*", "*")
	for path, allowed := range map[string]bool{
		"UserIT.java": false, "Audit.java": true, "Userit.java": true, "UserTest.java": false, "Latest.java": true, "UserTest.java:x": false,
		"ÜserTest.java": false, "TESTS/a.js": false, "A_TEST.GO": false, "SETUPTESTS.JS": false,
	} {
		if v := s.Judge(path); v.Allowed != allowed {
			t.Errorf("Judge(%q) = %+v, want allowed %v", path, v, allowed)
		}
	}
}
