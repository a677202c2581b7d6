package probe

import (
	"bytes"
	"strings"
)

func cargoStack(p *place) *found {
	var manifest struct {
		Package   any `toml:"package"`
		Workspace any `toml:"workspace"`
	}
	if !p.decode("Cargo.toml", &manifest) {
		return nil
	}
	f := p.newStack("cargo", "cargo", "Cargo.toml")
	f.covers = manifest.Workspace != nil
	f.Lockfile = p.findLockfile("Cargo.lock")
	// In a workspace with a package at its root, cargo takes only that by default.
	flag := ""
	if manifest.Workspace != nil && manifest.Package != nil {
		flag = " --workspace"
	}
	f.Setup = p.command("cargo fetch", "Cargo.toml, no lockfile")
	if f.Lockfile != "" {
		f.Setup = p.command("cargo fetch --locked", "Cargo.lock")
	}
	f.Test = p.command("cargo test"+flag, "Cargo.toml")
	f.Lint = p.command("cargo clippy"+flag, "Cargo.toml")
	f.Typecheck = p.command("cargo check"+flag, "Cargo.toml")
	f.Build = p.command("cargo build"+flag, "Cargo.toml")
	return f
}

func gradleStack(p *place) *found {
	manifest := p.firstOf("settings.gradle.kts", "settings.gradle", "build.gradle.kts", "build.gradle")
	if manifest == "" {
		return nil
	}
	f := p.newStack("gradle", "gradle", manifest)
	f.covers = true
	f.Lockfile = p.findLockfile("gradle.lockfile")
	run := wrapperOr(p, "gradlew", "gradle")
	f.Setup = p.command(run+" testClasses", manifest)
	f.Test = p.command(run+" test", manifest)
	f.Lint = p.command(run+" check", manifest)
	f.Build = p.command(run+" assemble", manifest)
	return f
}

func mavenStack(p *place) *found {
	data, ok := p.read("pom.xml")
	if !ok {
		return nil
	}
	f := p.newStack("maven", "maven", "pom.xml")
	f.covers = bytes.Contains(data, []byte("<modules>"))
	run := wrapperOr(p, "mvnw", "mvn")
	f.Setup = p.command(run+" -q dependency:go-offline", "pom.xml")
	f.Test = p.command(run+" -q test", "pom.xml")
	f.Typecheck = p.command(run+" -q test-compile", "pom.xml")
	f.Build = p.command(run+" -q -DskipTests package", "pom.xml")
	return f
}

// wrapperOr returns the project's own wrapper script if it exists, because it knows
// the right version, or program.
func wrapperOr(p *place, script, program string) string {
	if p.has(script) {
		return "./" + script
	}
	return program
}

// dotnetStack names the solution if there is more than one, because dotnet
// refuses to choose.
func dotnetStack(p *place) *found {
	files := p.filesEndingIn(".sln", ".slnx")
	solutions := len(files)
	if solutions == 0 {
		files = p.filesEndingIn(".csproj", ".fsproj")
	}
	if len(files) == 0 || !isPlain(files[0]) {
		return nil
	}
	what := ""
	if len(files) > 1 {
		what = " " + Quoted(files[0])
	}
	f := p.newStack("dotnet", "dotnet", files[0])
	f.covers = solutions > 0
	f.Lockfile = p.findLockfile("packages.lock.json")
	f.Setup = p.command("dotnet restore"+what, files[0])
	f.Test = p.command("dotnet test"+what, files[0])
	f.Build = p.command("dotnet build"+what, files[0])
	return f
}

func swiftStack(p *place) *found {
	if !p.has("Package.swift") {
		return nil
	}
	f := p.newStack("swift", "swift", "Package.swift")
	f.Lockfile = p.findLockfile("Package.resolved")
	f.Setup = p.command("swift package resolve", "Package.swift")
	f.Test = p.commandIf(p.hasDir("Tests"), "swift test", "the Tests directory")
	f.Build = p.command("swift build", "Package.swift")
	return f
}

// cmakeStack finds a project with one visible preset of each kind. If there are
// more, only a person can choose.
func cmakeStack(p *place) *found {
	type preset struct {
		Name   string `json:"name"`
		Hidden bool   `json:"hidden"`
	}
	var presets struct {
		Configure []preset `json:"configurePresets"`
		Build     []preset `json:"buildPresets"`
		Test      []preset `json:"testPresets"`
	}
	if !p.has("CMakeLists.txt") || !p.decode("CMakePresets.json", &presets) {
		return nil
	}
	var chosen []string
	for _, list := range [][]preset{presets.Configure, presets.Build, presets.Test} {
		var visible []string
		for _, one := range list {
			if !one.Hidden && one.Name != "" && isPlain(one.Name) {
				visible = append(visible, Quoted(one.Name))
			}
		}
		if len(visible) != 1 {
			return nil
		}
		chosen = append(chosen, visible[0])
	}
	lines := []string{"cmake --preset " + chosen[0], "cmake --build --preset " + chosen[1], "ctest --preset " + chosen[2]}
	f := p.newStack("cmake", "cmake", "CMakePresets.json")
	f.covers = true
	f.Build = p.command(strings.Join(lines[:2], " && "), "CMakePresets.json")
	f.Test = p.command(strings.Join(lines, " && "), "CMakePresets.json testPresets")
	return f
}
