package policy

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// framework is one program that runs tests: by which names it finds them when
// nobody configures it, and which files change what it does. The source says
// where its own documents have it.
type framework struct {
	name, source   string
	tests, configs []string
}

// frameworks are those whose defaults are protected. Of tests, a capital letter
// beside a wildcard counts as such: *IT.java takes UserIT.java and leaves
// Audit.java alone, as the frameworks do. Elsewhere letter case does not count.
var frameworks = []framework{
	{
		"go test", "https://pkg.go.dev/cmd/go#hdr-Test_packages",
		[]string{"**/*_test.go", "**/testdata/**", "**/*.golden"}, // Golden files are the convention of the standard library's own tests.
		nil,
	},
	{
		"pytest", "https://docs.pytest.org/en/stable/explanation/goodpractices.html#conventions-for-python-test-discovery",
		[]string{"**/test_*.py", "**/*_test.py"},
		[]string{"**/conftest.py", "**/conftest.pyc", "**/pytest.ini", "**/.pytest.ini", "**/pytest.toml", "**/.pytest.toml", "**/tox.ini", "**/tox.toml", "**/.coveragerc"},
	},
	{
		"unittest", "https://docs.python.org/3/library/unittest.html#test-discovery",
		[]string{"**/test*.py", "**/tests.py"}, // tests.py is where Django puts them.
		nil,
	},
	{"nose2", "https://docs.nose2.io/en/latest/configuration.html", []string{"**/test*.py"}, []string{"**/nose2.cfg", "**/unittest.cfg"}},
	{"nox", "https://nox.thea.codes/en/stable/config.html", nil, []string{"**/noxfile.py"}},
	{"behave", "https://behave.readthedocs.io/en/stable/gherkin.html", []string{"**/*.feature"}, []string{"**/behave.ini", "**/.behaverc"}},
	{
		"node --test", "https://nodejs.org/api/test.html#running-tests-from-the-command-line",
		slices.Concat(scriptGlobs("**/test."), []string{"**/*.test.*", "**/*-test.*", "**/*_test.*", "**/test-*.*", "**/test/**"}),
		nil,
	},
	{
		"jest", "https://jestjs.io/docs/configuration#testmatch-arraystring",
		slices.Concat(scriptGlobs("**/test."), scriptGlobs("**/spec."), []string{"**/__tests__/**", "**/*.test.*", "**/*.spec.*", "**/__mocks__/**", "**/__snapshots__/**", "**/*.snap"}),
		[]string{"**/jest.config.*", "**/jest.setup.*", "**/jest-setup.*", "**/setup-jest.*", "**/setupJest.*", "**/jest.preset.*", "**/jest-*.config.*"},
	},
	{"Create React App", "https://create-react-app.dev/docs/running-tests/#initializing-test-environment", nil, []string{"**/setupTests.*", "**/setup-tests.*"}},
	{
		"vitest", "https://vitest.dev/config/include",
		[]string{"**/*.test.*", "**/*.spec.*", "**/*.test-d.*", "**/*.bench.*"},
		[]string{"**/vitest.config.*", "**/vitest.workspace.*", "**/vitest.setup.*", "**/vitest-setup.*", "**/vitest.*.config.*"},
	},
	{"mocha", "https://mochajs.org/running/cli/#spec-arguments", []string{"**/test/**"}, []string{"**/.mocharc*", "**/test/mocha.opts"}},
	{
		"ava", "https://github.com/avajs/ava/blob/main/docs/05-command-line.md",
		slices.Concat(scriptGlobs("**/test."), []string{"**/test-*.*", "**/*.spec.*", "**/*.test.*", "**/test/**", "**/tests/**", "**/__tests__/**"}),
		[]string{"**/ava.config.*"},
	},
	{"jasmine", "https://jasmine.github.io/setup/nodejs.html", append(scriptGlobs("**/*spec."), "spec/**"), []string{"**/jasmine.json", "**/jasmine.*js"}},
	{"karma", "https://karma-runner.github.io/latest/config/configuration-file.html", nil, []string{"**/karma.conf.*", "**/karma-*.conf.*"}},
	{"playwright", "https://playwright.dev/docs/api/class-testconfig#test-config-test-match", []string{"**/*.spec.*", "**/*.test.*"}, []string{"**/playwright.config.*", "**/playwright-*.config.*"}},
	{
		"cypress", "https://docs.cypress.io/app/core-concepts/writing-and-organizing-tests#Spec-files",
		slices.Concat(scriptGlobs("**/*.cy."), []string{"**/cypress/**"}),
		[]string{"**/cypress.config.*", "**/cypress.json", "**/cypress.env.json"},
	},
	{"webdriverio", "https://webdriver.io/docs/configurationfile", nil, []string{"**/wdio.conf.*", "**/wdio.*.conf.*"}},
	{"testcafe", "https://testcafe.io/documentation/402638/reference/configuration-file", nil, []string{"**/.testcaferc*"}},
	{"tap", "https://node-tap.org/config/", []string{"**/test/**", "**/tests/**", "**/__tests__/**", "**/*.test.*"}, []string{"**/.taprc"}},
	{"storybook", "https://storybook.js.org/docs/writing-tests", nil, []string{"**/.storybook/test-runner*"}},
	{"coverage of Node", "https://github.com/istanbuljs/nyc#configuring-nyc", nil, []string{"**/.nycrc*", "**/.c8rc*", "**/nyc.config.*", "**/stryker.conf*"}},
	{"ember", "https://guides.emberjs.com/release/testing/", append(scriptGlobs("**/*-test."), "**/tests/**"), []string{"**/testem.*js"}},
	{"deno test", "https://docs.deno.com/runtime/reference/cli/test/", slices.Concat(scriptGlobs("**/test."), []string{"**/*_test.*", "**/*.test.*", "**/__tests__/**"}), nil},
	{"bun test", "https://bun.com/docs/test/discovery", []string{"**/*.test.*", "**/*_test.*", "**/*.spec.*", "**/*_spec.*"}, nil},
	{"rspec", "https://rspec.info/documentation/3.13/rspec-core/RSpec/Core/RakeTask.html", []string{"**/*_spec.rb", "spec/**"}, []string{"**/.rspec", "**/.rspec-local", "**/spec_helper.rb", "**/rails_helper.rb"}},
	{
		"minitest", "https://docs.seattlerb.org/minitest/Minitest/TestTask.html",
		[]string{"**/test_*.rb", "**/*_test.rb", "**/*_spec.rb"},
		[]string{"**/test_helper.*", "**/minitest_helper.*"},
	},
	{"cucumber", "https://cucumber.io/docs/cucumber/configuration/", []string{"**/*.feature", "**/step_definitions/**"}, []string{"**/cucumber.y*ml", "**/cucumber.*js", "**/cucumber.json"}},
	{"cargo test", "https://doc.rust-lang.org/cargo/guide/tests.html", []string{"**/tests/**", "**/tests.rs", "**/test.rs", "**/*_test.rs", "**/*_tests.rs"}, []string{"**/nextest.toml"}},
	{"insta", "https://insta.rs/docs/snapshot-types/", []string{"**/*.snap", "**/*.snap.new"}, nil},
	{
		"maven surefire", "https://maven.apache.org/surefire/maven-surefire-plugin/examples/inclusion-exclusion.html",
		[]string{"**/Test*.java", "**/*Test.java", "**/*Tests.java", "**/*TestCase.java"},
		nil,
	},
	{"maven failsafe", "https://maven.apache.org/surefire/maven-failsafe-plugin/examples/inclusion-exclusion.html", []string{"**/IT*.java", "**/*IT.java", "**/*ITCase.java"}, nil},
	{
		"gradle", "https://docs.gradle.org/current/userguide/java_testing.html",
		[]string{"**/src/test/**", "**/src/*Test/**", "**/src/testFixtures/**", "**/src/testDebug/**", "**/src/testRelease/**"},
		[]string{"**/junit-platform.properties", "**/testng*.xml"},
	},
	{"kotest", "https://kotest.io/docs/framework/testing-styles.html", []string{"**/*Test.kt", "**/*Tests.kt", "**/*Spec.kt", "**/*Test.kts"}, []string{"**/kotest.properties"}},
	{"spock", "https://spockframework.org/spock/docs/2.3/spock_primer.html", []string{"**/*Spec.groovy", "**/*Test.groovy", "**/*Specification.groovy", "**/*Spec.java"}, []string{"**/SpockConfig.groovy"}},
	{"scalatest", "https://www.scalatest.org/user_guide/selecting_a_style", []string{"**/*Spec.scala", "**/*Test.scala", "**/*Tests.scala", "**/*Suite.scala"}, nil},
	{
		"dotnet test", "https://learn.microsoft.com/dotnet/core/testing/unit-testing-best-practices",
		[]string{"**/*Test.cs", "**/*Tests.cs", "**/*Test.fs", "**/*Tests.fs", "**/*Test.vb", "**/*Tests.vb", "**/*Spec.cs", "**/*Specs.cs", "**/*.Tests/**", "**/*.Test/**"},
		[]string{"**/*.runsettings", "**/xunit.runner.json", "**/testconfig.json"},
	},
	{"phpunit", "https://docs.phpunit.de/en/12.0/organizing-tests.html", []string{"**/*Test.php", "**/*.phpt"}, []string{"**/phpunit.xml*", "**/phpunit.dist.xml"}},
	{"pest", "https://pestphp.com/docs/configuring-tests", []string{"**/*Test.php", "**/tests/**"}, []string{"**/Pest.php"}},
	{"phpspec", "https://phpspec.net/en/stable/cookbook/configuration.html", []string{"**/*Spec.php", "spec/**"}, []string{"**/phpspec.y*ml*", "**/.phpspec.y*ml"}},
	{"behat", "https://docs.behat.org/en/latest/user_guide/configuration.html", []string{"**/*.feature"}, []string{"**/behat.y*ml*"}},
	{"codeception", "https://codeception.com/docs/GettingStarted", []string{"**/*Cest.php", "**/*Cept.php"}, []string{"**/codeception.y*ml", "**/codeception.dist.yml", "**/*.suite.yml"}},
	{"ExUnit", "https://hexdocs.pm/mix/Mix.Tasks.Test.html", []string{"**/*_test.exs"}, []string{"**/test_helper.*"}},
	{"erlang", "https://www.erlang.org/doc/apps/common_test/write_test_chapter.html", []string{"**/*_SUITE.erl", "**/*_tests.erl", "**/*_SUITE_data/**"}, []string{"**/test.spec"}},
	{"XCTest", "https://docs.swift.org/package-manager/PackageDescription/PackageDescription.html", []string{"**/*Test.swift", "**/*Tests.swift", "**/*Spec.swift", "**/tests/**"}, []string{"**/*.xctestplan"}},
	{"bats", "https://bats-core.readthedocs.io/en/stable/usage.html", []string{"**/*.bats"}, []string{"**/setup_suite.bash", "**/test_helper.*"}},
	{"shellspec", "https://github.com/shellspec/shellspec#project-directory", []string{"**/*_spec.sh", "spec/**"}, []string{"**/.shellspec*"}},
	{"shunit2", "https://github.com/kward/shunit2", []string{"**/*_test.sh", "**/test_*.sh"}, nil},
	{
		"ctest and googletest", "https://cmake.org/cmake/help/latest/manual/ctest.1.html",
		[]string{"**/*_test.*", "**/*_unittest.*", "**/test_*.c*", "**/*Test.cpp", "**/*Tests.cpp", "**/*_tests.c*"},
		[]string{"**/CTestConfig.cmake", "**/CTestCustom.*", "**/CTestTestfile.cmake"},
	},
	{"dart and flutter", "https://dart.dev/tools/dart-test", []string{"**/*_test.dart", "**/test_driver/**", "**/integration_test/**"}, []string{"**/dart_test.yaml", "**/flutter_test_config.dart"}},
	{"hspec", "https://hspec.github.io/hspec-discover.html", []string{"**/*Spec.hs"}, []string{"**/.hspec*"}},
	{"crystal spec", "https://crystal-lang.org/reference/latest/guides/testing.html", []string{"**/*_spec.cr"}, []string{"**/spec_helper.cr"}},
	{"clojure.test", "https://clojure.github.io/clojure/clojure.test-api.html", []string{"**/*_test.clj*"}, []string{"**/tests.edn"}},
	{"testthat", "https://testthat.r-lib.org/articles/special-files.html", []string{"**/test-*.*", "**/test_*.R", "**/testthat.R", "**/testthat/**"}, nil},
	{"busted", "https://lunarmodules.github.io/busted/#usage", []string{"**/*_spec.lua", "spec/**"}, []string{"**/.busted"}},
	{"prove", "https://perldoc.perl.org/prove", []string{"**/*.t", "t/**", "**/xt/**"}, []string{"**/.proverc"}},
	{"julia", "https://pkgdocs.julialang.org/v1/creating-packages/#Adding-tests-to-the-package", []string{"**/runtests.jl", "**/test/**"}, nil},
	{"foundry", "https://getfoundry.sh/forge/tests/overview", []string{"**/*.t.sol"}, nil},
	{"Pester", "https://pester.dev/docs/usage/file-placement-and-naming", []string{"**/*.Tests.ps1"}, []string{"**/PesterConfiguration.psd1"}},
	{"zig", "https://ziglang.org/documentation/master/#Zig-Test", []string{"**/*_test.zig", "**/test_*.zig"}, nil},
	{"lit", "https://llvm.org/docs/CommandGuide/lit.html", nil, []string{"**/lit.cfg*", "**/lit.site.cfg*", "**/lit.local.cfg"}},
	{"coverage services", "https://docs.codecov.com/docs/codecov-yaml", nil, []string{"**/codecov.y*ml", "**/.codecov.y*ml", "**/.coveralls.yml"}},
	{
		"conventions", "no framework's own: what their tests are run by or compared with",
		[]string{
			"**/test/**", "**/tests/**", "**/e2e/**", "**/fixtures/**", "**/__fixtures__/**", "**/run_tests.*", "**/run-tests.*", "**/runtests.*", "**/run_test.*",
			"**/run-test.*", "**/*-spec.*", "**/*_spec.*", "**/*Spec.*", "**/*.approved.*", "**/*.verified.*",
		},
		[]string{"**/testsetup.*", "**/test.setup.*", "**/tests.setup.*", "**/TestHelper.*", "**/testhelper.*"},
	},
}

// scriptGlobs appends to head each ending of programs for Node and similar
// runtimes.
func scriptGlobs(head string) []string {
	var all []string
	for _, end := range []string{"js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "coffee"} {
		all = append(all, head+end)
	}
	return all
}

// defaultsOf are the globs of all frameworks, each once.
func defaultsOf(globs func(framework) []string) []string {
	var all []string
	for _, f := range frameworks {
		for _, g := range globs(f) {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
	}
	return all
}

// caseMatters reports whether letter case counts in a glob of tests.
func caseMatters(group, glob string) bool {
	part := tellingPart(glob)
	return group == testsGroup && strings.Contains(part, "*") && strings.ToLower(part) != part
}

// sameCase reports whether a path matches a glob in which letter case counts. In
// doubt it does: a path that is not plainly written can be meant for another.
func sameCase(glob, name string) bool {
	odd := func(c rune) bool { return c >= utf8.RuneSelf || c == ':' }
	return strings.ContainsFunc(name, odd) || match(glob, name)
}

// notTests are endings that no framework of tests has for a glob.
var notTests = map[string][]string{
	"**/*spec.*": {".go", ".proto", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".py", ".yaml", ".yml", ".json", ".toml", ".md"},
}

// prosy are globs of tests that documents have names of, too. No framework takes
// a document for a test.
var prosy = []string{"**/test-*.*", "**/*-test.*", "**/*_test.*", "**/*-spec.*", "**/*_spec.*", "**/*.test.*", "**/*.spec.*"}

var prose = []string{".md", ".mdx", ".rst", ".adoc"}
