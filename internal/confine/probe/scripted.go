package probe

import (
	"bytes"
	"encoding/json"
)

func phpStack(p *place) *found {
	var composer struct {
		Scripts map[string]json.RawMessage `json:"scripts"`
		Require map[string]string          `json:"require"`
		Dev     map[string]string          `json:"require-dev"`
	}
	if !p.decode("composer.json", &composer) {
		return nil
	}
	f := p.newStack("php", "composer", "composer.json")
	f.Lockfile = p.findLockfile("composer.lock")
	f.Setup = p.command("composer install --no-interaction", "composer.json")
	config := p.firstOf("phpunit.xml", "phpunit.xml.dist")
	switch {
	case composer.Scripts["test"] != nil:
		f.Test = p.command("composer test", "composer.json scripts.test")
	case config != "":
		f.Test = p.command("vendor/bin/phpunit", config)
	case composer.Dev["phpunit/phpunit"] != "":
		f.Test = p.command("vendor/bin/phpunit", "composer.json require-dev")
	}
	if config := p.firstOf("phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"); config != "" {
		f.Typecheck = p.command("vendor/bin/phpstan analyse --no-progress", config)
	}
	f.Lint = p.commandIf(composer.Scripts["lint"] != nil, "composer lint", "composer.json scripts.lint")
	return f
}

func rubyStack(p *place) *found {
	data, ok := p.read("Gemfile")
	if !ok {
		return nil
	}
	f := p.newStack("ruby", "bundler", "Gemfile")
	f.Lockfile = p.findLockfile("Gemfile.lock")
	f.Setup = p.command("bundle install", "Gemfile")
	hasRails := bytes.Contains(data, []byte("gem 'rails'")) || bytes.Contains(data, []byte(`gem "rails"`))
	switch {
	case p.has(".rspec"):
		f.Test = p.command("bundle exec rspec", ".rspec")
	case p.hasDir("spec"):
		f.Test = p.command("bundle exec rspec", "the spec directory")
	case p.hasDir("test") && p.hasDir("config") && hasRails:
		f.Test = p.command("bundle exec rails test", "Gemfile")
	case p.hasDir("test") && p.has("Rakefile"):
		f.Test = p.command("bundle exec rake test", "Rakefile")
	}
	f.Lint = p.commandIf(p.has(".rubocop.yml"), "bundle exec rubocop", ".rubocop.yml")
	return f
}

func elixirStack(p *place) *found {
	if _, ok := p.read("mix.exs"); !ok {
		return nil
	}
	f := p.newStack("elixir", "mix", "mix.exs")
	f.covers = p.hasDir("apps")
	f.Lockfile = p.findLockfile("mix.lock")
	f.Setup = p.command("mix deps.get", "mix.exs")
	f.Test = p.command("mix test", "mix.exs")
	f.Lint = p.commandIf(p.has(".formatter.exs"), "mix format --check-formatted", ".formatter.exs")
	f.Typecheck = p.command("mix compile --warnings-as-errors", "mix.exs")
	f.Build = p.command("mix compile", "mix.exs")
	return f
}
