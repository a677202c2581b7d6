package modelapi

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The names of fields, in the two spellings that Gemini accepts.
var (
	configNames    = []string{"generationConfig", "generation_config"}
	outputNames    = []string{"maxOutputTokens", "max_output_tokens"}
	candidateNames = []string{"candidateCount", "candidate_count"}
)

// Generate is generateContent and streamGenerateContent of Gemini.
var Generate = &Shape{
	maxOutput: func(top fields) int64 {
		config, _ := top.object(configNames...)
		answers, _ := config.count(candidateNames...)
		return outputCap(config, outputNames...) * max(min(answers, 128), 1)
	},
	lowerOutput: func(top fields, most int64) bool {
		config, name := top.object(configNames...)
		if name == "" {
			config, name = fields{}, configNames[0]
		}
		if answers, _ := config.count(candidateNames...); answers > 1 {
			most /= answers
		}
		delete(config, outputNames[1])
		config.set(outputNames[0], max(most, 1))
		top.set(name, config)
		return most > 0
	},
	readEvent: func(t *Tally, data []byte) bool {
		t.addGenerated(data)
		return false
	},
	readWhole: func(t *Tally, data []byte) {
		// A stream that was not requested as events is a list of pieces.
		var list []json.RawMessage
		if json.Unmarshal(data, &list) != nil {
			t.addGenerated(data)
			return
		}
		for _, piece := range list {
			t.addGenerated(piece)
		}
	},
}

// addGenerated adds an answer or a piece of one.
func (t *Tally) addGenerated(data []byte) {
	var g struct {
		Version    string `json:"modelVersion"`
		Candidates []struct {
			Content struct {
				Parts []struct {
					Text length `json:"text"`
					Call length `json:"functionCall"`
					Code length `json:"executableCode"`
				} `json:"parts"`
			} `json:"content"`
			Finish    string `json:"finishReason"`
			Grounding struct {
				Searches []string `json:"webSearchQueries"`
			} `json:"groundingMetadata"`
		} `json:"candidates"`
		Usage json.RawMessage `json:"usageMetadata"`
		Error *VendorError    `json:"error"`
	}
	if !decode(data, &g) {
		t.addUnreadable(data)
		return
	}
	if g.Version != "" {
		t.Model = g.Version
	}
	if g.Error != nil {
		t.Failure = g.Error
	}
	for _, c := range g.Candidates {
		t.ended = t.ended || c.Finish != ""
		t.addSearches(searches{web: int64(len(c.Grounding.Searches))})
		for _, p := range c.Content.Parts {
			t.text += int64(p.Text + p.Call + p.Code)
		}
	}
	t.addGeneratedUsage(g.Usage)
}

func (t *Tally) addGeneratedUsage(raw json.RawMessage) {
	var u struct {
		Prompt     loop.Count `json:"promptTokenCount"`
		Cached     loop.Count `json:"cachedContentTokenCount"`
		Candidates loop.Count `json:"candidatesTokenCount"`
		Thoughts   loop.Count `json:"thoughtsTokenCount"`
		Tools      loop.Count `json:"toolUsePromptTokenCount"`
	}
	_, bad := decodeUsage(raw, &u)
	t.bad = t.bad || bad
	r := reported{input: u.Prompt, cacheRead: u.Cached}.withoutCachedInput()
	r.input.N += u.Tools.N
	r.input.Bad = r.input.Bad || u.Tools.Bad
	// Zero counts are omitted, so one of the two is enough.
	r.output = loop.Count{
		N: u.Candidates.N + u.Thoughts.N, Set: u.Candidates.Set || u.Thoughts.Set, Bad: u.Candidates.Bad || u.Thoughts.Bad,
	}
	r.reasoning = u.Thoughts
	t.add(r)
}
