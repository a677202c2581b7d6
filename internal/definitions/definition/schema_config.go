package definition

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Patterns of values that are texts. They use only what every dialect of
// regular expressions has.
const (
	somethingPattern = `\S`
	countPattern     = `^0*[1-9][0-9]*$`
	sizePattern      = `^([1-9][0-9]{0,5}) ?([MGT]i?B)$`
	durationPattern  = `^([0-9]{1,3}w)?([0-9]{1,3}d)?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`
	// Up to a million with at most six decimals, and not zero.
	dollarsPattern = `^0*([1-9][0-9]{0,5}(\.[0-9]{1,6})?|1000000(\.0{1,6})?|` +
		`0\.([1-9][0-9]{0,5}|0[1-9][0-9]{0,4}|00[1-9][0-9]{0,3}|000[1-9][0-9]{0,2}|0000[1-9][0-9]?|00000[1-9]))$`
	urlPattern      = `^https?://[^/?#@\s]+(/[^?#\s]*)?$`
	eventPattern    = `^(none|(file|ref|webhook|cmd):\s*\S.*|loop:[^=]+=\s*\S.*)$`
	stopLinePattern = `^(none|\s*(iterations|errors|minutes)\s*>=\s*(0*[1-9][0-9]{0,8}(\.[0-9]*)?|0*\.0*[1-9][0-9]*)\s*|` +
		`\s*confidence\s*<\s*(0*\.0*[1-9][0-9]*|0*1(\.0*)?)\s*)$`
	variablePattern = `^[A-Za-z_][A-Za-z0-9_]*$`

	wholeTreePattern  = `^(\.|[*?]*)(/(\.|[*?]*))*$`
	outOfScopePattern = `^[!/\\]|(^|[/\\])\.\.([/\\]|$)`
)

// looseTypes are the types that a YAML parser may give to a text without quotes: pawl takes
// it as text.
var looseTypes = []string{"string", "number", "boolean"}

// buildConfigSchema returns the schema of loop.config.yaml. It accepts everything that
// Definition accepts without a finding, with two exceptions that an editor should mark: a
// key without a value, for which pawl uses the default, and a flow collection instead of a
// text, which pawl takes as text.
func buildConfigSchema() schema {
	s := schema{
		Draft: "http://json-schema.org/draft-07/schema#", ID: "https://pawl.run/schema/config.v1.json",
		Title: "pawl loop definition",
		Description: "The definition of a loop, .loops/NAME/loop.config.yaml: flat YAML, owned by people. Unknown keys are kept. " +
			"pawl explain KEY says more about each.",
		Type: "object",
	}
	example := map[string]any{}
	for _, f := range fields {
		s.Properties = append(s.Properties, property{f.Name, f.valueSchema()})
		if f.Required == RequiredAlways {
			s.Required = append(s.Required, f.Name)
		}
		if f.Format {
			example[f.Name] = f.yamlValue(f.Example)
		}
	}
	s.AllOf = []schema{fromL2(), atL3()}
	s.Examples = []any{example}
	return s
}

// tierCondition returns the condition that a definition has one of the tiers.
func tierCondition(all ...loop.Tier) *schema {
	var names []any
	for _, t := range all {
		names = append(names, string(t))
	}
	return &schema{Properties: properties{{"tier", schema{Enum: names}}}, Required: []string{"tier"}}
}

// fromL2 returns the keys that are required if an agent changes files.
func fromL2() schema {
	then := &schema{}
	for _, f := range fields {
		if f.Required != RequiredFromL2 {
			continue
		}
		must := schema{Pattern: somethingPattern}
		if f.Kind == KindFlag {
			// The second form is the text in quotes, which editors need not offer.
			must = schema{AnyOf: []schema{{Const: true}, {Type: "string", Pattern: "^true$"}}}
		}
		then.Properties = append(then.Properties, property{f.Name, must})
		then.Required = append(then.Required, f.Name)
	}
	return schema{If: tierCondition(loop.TierAssisted, loop.TierUnattended), Then: then}
}

func atL3() schema {
	none := schema{Not: &schema{Const: "none"}}
	return schema{If: tierCondition(loop.TierUnattended), Then: &schema{Properties: properties{{"sandbox", none}}}}
}

// valueSchema returns the schema of the key's values, for editors to check and complete.
func (f Field) valueSchema() schema {
	s := f.shapeSchema()
	s.Description = f.Meaning
	if fallback := f.Fallback(); fallback != "" {
		s.Description += " Default: " + fallback + "."
	}
	if f.Default != "" {
		s.Default = f.yamlValue(f.Default)
	}
	if f.NotYet == Refused {
		s.Description += " Not supported by this version yet: " + f.onlyDefault() + "."
		return s
	}
	s.Examples = []any{f.yamlValue(f.Example)}
	return s
}

// onlyDefault says which value of a refused key is accepted.
func (f Field) onlyDefault() string { return "only " + f.Default + " is accepted" }

func (f Field) shapeSchema() schema {
	if f.NotYet == Refused {
		return f.refusedSchema()
	}
	return f.kindSchema()
}

// refusedSchema accepts only the default.
func (f Field) refusedSchema() schema {
	nothing := schema{Type: "array", MaxItems: new(int)}
	only := []schema{{Const: f.yamlValue(f.Default)}}
	if _, isText := only[0].Const.(string); !isText {
		only = append(only, schema{Type: "string", Pattern: "^" + f.Default + "$"})
	}
	return schema{AnyOf: append(only, nothing)}
}

// kindSchema returns the schema of a value by its kind.
func (f Field) kindSchema() schema {
	switch f.Kind {
	case KindEnum:
		return f.enumSchema()
	case KindCount:
		return schema{Type: []string{"integer", "string"}, Minimum: 1, Maximum: f.maxCount(), Pattern: countPattern}
	case KindDuration:
		return schema{Type: "string", Pattern: durationPattern}
	case KindSize:
		return schema{Type: "string", Pattern: sizePattern}
	case KindGlobs, KindList:
		return f.listSchema()
	case KindCadence:
		return schema{Type: "string", Pattern: somethingPattern}
	case KindFlag:
		if len(f.Values) > 0 {
			// The second forms are the texts in quotes.
			return schema{Enum: []any{true, false, "true", "false"}}
		}
	case KindAmount:
		return schema{Type: []string{"number", "string"}, Above: new(int64), Maximum: mostDollars, Pattern: dollarsPattern}
	case KindText, KindCommand:
		if f.Name == "base_url" {
			return schema{Type: "string", Pattern: urlPattern}
		}
	}
	if f.Required == RequiredAlways {
		return schema{Type: looseTypes, Pattern: somethingPattern}
	}
	return schema{Type: looseTypes}
}

func (f Field) maxCount() int64 {
	if strings.HasPrefix(f.Name, "budget_tokens") {
		return mostTokens
	}
	return mostInt
}

// mostTokens is the largest valid budget.
const mostTokens = 1 << 50

func (f Field) enumSchema() schema {
	known := schema{Enum: anyList(f.Values)}
	if f.Open {
		return schema{AnyOf: []schema{known, {Type: looseTypes, Pattern: somethingPattern}}}
	}
	return known
}

// listSchema accepts a list of items, or one item.
func (f Field) listSchema() schema {
	item := schema{Type: looseTypes}
	switch {
	case f.Name == "scope":
		item = schema{Type: looseTypes, Pattern: somethingPattern, Not: &schema{AnyOf: []schema{
			{Type: "string", Pattern: wholeTreePattern}, {Type: "string", Pattern: outOfScopePattern},
		}}}
	case f.Name == "env":
		item = schema{Type: []string{"string", "boolean"}, Pattern: variablePattern}
	case f.Name == "stop_lines":
		item = schema{Type: "string", Pattern: stopLinePattern}
	case f.Name == "on":
		item = schema{Type: "string", Pattern: eventPattern}
	case f.Kind == KindGlobs:
		item = schema{Type: looseTypes, Not: &schema{Type: "string", Pattern: outOfScopePattern}}
	case f.Values != nil:
		item = schema{Enum: anyList(f.Values)}
	}
	many := schema{Type: "array", Items: &item}
	if f.Required == RequiredAlways {
		many.MinItems = 1
	}
	if f.Kind == KindGlobs {
		many.MaxItems = new(maxPatterns)
	}
	return schema{AnyOf: []schema{many, item}}
}

func anyList(all []string) []any {
	var list []any
	for _, text := range all {
		list = append(list, text)
	}
	return list
}

// yamlValue returns what a YAML parser makes of a value of the key. The values are those of
// the table: an invalid one is a mistake of this package.
func (f Field) yamlValue(text string) any {
	doc, err := Parse("table of keys", []byte(f.Name+": "+text+"\n"))
	if err != nil {
		panic(fmt.Sprintf("definition: value of %s: %v", f.Name, err))
	}
	scalar, _ := doc.Scalar(f.Name)
	switch f.Kind {
	case KindGlobs, KindList:
		if text[0] != '[' {
			return text // It is a word that means an empty list.
		}
		list := []any{}
		for _, item := range doc.List(f.Name) {
			list = append(list, item.Text)
		}
		return list
	case KindFlag:
		return scalar.Text == "true"
	case KindCount, KindAmount, KindDuration, KindSize:
		if n, err := strconv.ParseFloat(scalar.Text, 64); err == nil && !math.IsInf(n, 0) {
			return n
		}
	case KindText, KindCommand, KindEnum, KindCadence:
	}
	return scalar.Text
}
