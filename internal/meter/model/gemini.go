package model

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/loop"
)

// Names of one thing in the two spellings that Gemini takes.
var (
	configNames = []string{"generationConfig", "generation_config"}
	mostNames   = []string{"maxOutputTokens", "max_output_tokens"}
	answerNames = []string{"candidateCount", "candidate_count"}
)

// generate is generateContent and streamGenerateContent of Gemini.
var generate = &shape{
	most: func(top fields) int64 {
		config, _ := top.under(configNames...)
		answers, _ := config.count(answerNames...)
		return named(config, mostNames...) * max(min(answers, 128), 1)
	},
	lower: func(top fields, most int64) bool {
		config, name := top.under(configNames...)
		if name == "" {
			config, name = fields{}, configNames[0]
		}
		if answers, _ := config.count(answerNames...); answers > 1 {
			most /= answers
		}
		delete(config, mostNames[1])
		config.set(mostNames[0], max(most, 1))
		top.set(name, config)
		return most > 0
	},
	event: func(t *tally, data []byte) bool {
		t.generated(data)
		return false
	},
	whole: generatedWhole,
}

// generatedWhole reads one answer, or the list of pieces that a stream is which
// was not asked for as events.
func generatedWhole(t *tally, data []byte) {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		t.generated(data)
		return
	}
	for _, piece := range list {
		t.generated(piece)
	}
}

func (t *tally) generated(data []byte) {
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
		Error *vendorError    `json:"error"`
	}
	if !decode(data, &g) {
		t.unread(data)
		return
	}
	if g.Version != "" {
		t.model = g.Version
	}
	if g.Error != nil {
		t.failure = g.Error
	}
	for _, c := range g.Candidates {
		t.ended = t.ended || c.Finish != ""
		t.searched(parts{web: int64(len(c.Grounding.Searches))})
		for _, p := range c.Content.Parts {
			t.text += int64(p.Text + p.Call + p.Code)
		}
	}
	t.generatedUsage(g.Usage)
}

func (t *tally) generatedUsage(raw json.RawMessage) {
	var u struct {
		Prompt     loop.Count `json:"promptTokenCount"`
		Cached     loop.Count `json:"cachedContentTokenCount"`
		Candidates loop.Count `json:"candidatesTokenCount"`
		Thoughts   loop.Count `json:"thoughtsTokenCount"`
		Tools      loop.Count `json:"toolUsePromptTokenCount"`
	}
	_, bad := report(raw, &u)
	t.bad = t.bad || bad
	s := said{input: u.Prompt, cacheRead: u.Cached}.inclusive()
	s.input.N += u.Tools.N
	s.input.Bad = s.input.Bad || u.Tools.Bad
	// A zero is left out, so that one of the two speaks for both.
	s.output = loop.Count{
		N: u.Candidates.N + u.Thoughts.N, Set: u.Candidates.Set || u.Thoughts.Set, Bad: u.Candidates.Bad || u.Thoughts.Bad,
	}
	s.reasoning = u.Thoughts
	t.take(s)
}
