package modelcalls

import (
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Call is a call of a model.
type Call struct{ Provider, Path, Body string }

// The paths of the four APIs.
const (
	MessagesPath  = "/v1/messages"
	ChatPath      = "/v1/chat/completions"
	ResponsesPath = "/v1/responses"
	GeminiPath    = "/v1beta/models/m:generateContent"
)

func inMessages(rest string) Call {
	return Call{"anthropic", MessagesPath, `{"model":"m","max_tokens":5,` + rest + `}`}
}

func inMessage(block string) Call {
	return inMessages(`"messages":[{"role":"user","content":[{"type":"text","text":"hi"},` + block + `]}]`)
}

func inChat(rest string) Call {
	return Call{"openai", ChatPath, `{"model":"m",` + rest + `}`}
}

func inChatPart(part string) Call {
	return inChat(`"messages":[{"role":"user","content":[` + part + `]}]`)
}

func inResponses(rest string) Call {
	return Call{"openai", ResponsesPath, `{"model":"m",` + rest + `}`}
}

func inItem(item string) Call { return inResponses(`"input":[` + item + `]`) }

func inGemini(rest string) Call { return Call{"gemini", GeminiPath, `{` + rest + `}`} }

func inPart(part string) Call { return inGemini(`"contents":[{"parts":[` + part + `]}]`) }

// HostedCalls returns calls that use tools of the vendor, by the tool that allows them.
func HostedCalls() map[loop.ModelTool][]Call {
	return map[loop.ModelTool][]Call{
		loop.ToolWebSearch: {
			inMessages(`"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[]`),
			inMessages(`"tools":[{"name":"mine","input_schema":{}},{"type":"web_search_20990101","name":"web_search"}],"messages":[]`),
			inMessages(`"tools":[{"name":"w","Type":"web_search_20250305"}],"messages":[]`),
			inMessages(`"tools":{"type":"web_search_20250305"},"messages":[]`),
			inMessages(`"tools":[{"t\u0079pe":"web_search_20250305"}],"messages":[]`),
			inMessage(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"web_search"}}}`),
			inMessage(`{"type":"tool_addition","definition":{"type":"web_search_20250305","name":"web_search"}}`),
			inMessages(`"messages":[{"role":"assistant","content":[{"type":"compaction","tool_changes":[{"type":"tool_addition","tool":{"type":"web_search_20250305"}}]}]}]`),
			inChat(`"web_search_options":{},"messages":[]`), inChat(`"search_parameters":{"mode":"on"},"messages":[]`),
			inChat(`"plugins":[{"id":"web"}],"messages":[]`), inChat(`"enable_search":true,"messages":[]`),
			inChat(`"Web_Search_Options":{},"messages":[]`),
			inChat(`"tools":[{"type":"web_search","web_search":{"enable":true}}],"messages":[]`),
			inChat(`"tools":[{"type":"builtin_function","function":{"name":"$web_search"}}],"messages":[]`),
			{"openai", ChatPath, `{"model":"gpt-4o-search-preview","messages":[]}`},
			{"openai", ChatPath, `{"model":"gpt-5-search-api-2025-10-14","messages":[]}`},
			{"openai", ChatPath, `{"model":"openai/gpt-4o:online","messages":[]}`},
			{"openai", ResponsesPath, `{"model":"o3-deep-research","input":"x"}`},
			inResponses(`"tools":[{"type":"web_search"}]`), inResponses(`"tools":[{"type":"web_search_preview_2025_03_11"}]`),
			inResponses(`"tools":[{"type":"web_search","external_web_access":false}]`), inResponses(`"tools":[{"type":"x_search"}]`),
			inResponses(`"tools":[{"type":"namespace","name":"n","tools":[{"type":"web_search"}]}]`),
			inItem(`{"type":"additional_tools","tools":[{"type":"web_search"}]}`),
			inItem(`{"type":"tool_search_output","tools":[{"type":"web_search"}]}`),
			{"openai", "/v1/responses/input_tokens", `{"model":"m","tools":[{"type":"web_search"}]}`},
			inGemini(`"contents":[],"tools":[{"googleSearch":{}}]`), inGemini(`"contents":[],"tools":[{"google_search":{}}]`),
			inGemini(`"contents":[],"tools":{"googleSearch":{}}`), inGemini(`"contents":[],"Tools":[{"GoogleSearch":{}}]`),
			inGemini(`"contents":[],"tools":[{"functionDeclarations":[]},{"google_search_retrieval":{}}]`),
			inGemini(`"contents":[],"tools":[{"enterpriseWebSearch":{}}]`),
			{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"tools":[{"googleSearch":{}}]}`},
			{"gemini", "/v1beta/models/m:countTokens", `{"generateContentRequest":{"model":"models/m","tools":[{"google_search":{}}]}}`},
		},
		loop.ToolWebFetch: {
			inMessages(`"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}],"messages":[]`),
			{"anthropic", "/v1/messages/count_tokens", `{"model":"m","tools":[{"type":"web_fetch_20250910"}],"messages":[]}`},
			inGemini(`"contents":[],"tools":[{"urlContext":{}}]`), inGemini(`"contents":[],"tools":[{"url_context":{}}]`),
		},
		loop.ToolCode: {
			inMessages(`"tools":[{"type":"code_execution_20250825","name":"code_execution"}],"messages":[]`),
			inMessages(`"container":"container_1","messages":[]`), inMessages(`"container":{"skills":[{"type":"anthropic","skill_id":"pdf"}]},"messages":[]`),
			inResponses(`"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`),
			inResponses(`"tools":[{"type":"shell","environment":{"type":"container_auto"}}]`), inResponses(`"tools":[{"type":"shell"}]`),
			inGemini(`"contents":[],"tools":[{"code_execution":{}}]`), inPart(`{"executableCode":{"code":"x"}}`), inPart(`{"code_execution_result":{}}`),
		},
		loop.ToolSearch: {
			inResponses(`"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]`), inGemini(`"contents":[],"tools":[{"fileSearch":{}}]`),
			inGemini(`"contents":[],"tools":[{"retrieval":{}}]`),
		},
		loop.ToolImages: {inResponses(`"tools":[{"type":"image_generation"}]`)},
		loop.ToolMaps:   {inGemini(`"contents":[],"tools":[{"googleMaps":{}}]`)},
		loop.ToolMCP: {
			inMessages(`"mcp_servers":[{"type":"url","url":"https://mcp.example.org","name":"x"}],"messages":[]`),
			inMessages(`"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}],"messages":[]`),
			inResponses(`"tools":[{"type":"mcp","server_url":"https://mcp.example.org"}]`), inResponses(`"tools":[{"type":"mcp","connector_id":"connector_gmail"}]`),
			inGemini(`"contents":[],"tools":[{"mcpServers":[{}]}]`),
		},
		loop.ToolAdvisor: {inMessages(`"tools":[{"type":"advisor_20260301","name":"advisor","model":"x"}],"messages":[]`)},
		loop.ToolURLs: {
			inMessage(`{"type":"image","source":{"type":"url","url":"https://collect.example.org/?secret"}}`),
			inMessage(`{"type":"document","source":{"type":"url","url":"https://collect.example.org/x.pdf"}}`),
			inMessage(`{"type":"image","source":{"type":"base64","url":"https://collect.example.org"}}`),
			inMessage(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://collect.example.org"}}]}`),
			inMessage(`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":"https://collect.example.org"}}]}}`),
			inMessages(`"system":[{"type":"image","source":{"type":"url","url":"https://collect.example.org"}}],"messages":[]`),
			inChatPart(`{"type":"image_url","image_url":{"url":"https://collect.example.org/?secret"}}`),
			inChatPart(`{"type":"image_url","image_url":"https://collect.example.org/?secret"}`),
			inChatPart(`{"type":"image_url","image_url":{"url":"//collect.example.org"}}`),
			inChatPart(`{"type":"video_url","video_url":{"url":"https://collect.example.org"}}`),
			inChatPart(`{"type":"file","file":{"filename":"x","file_data":"https://collect.example.org/x.pdf"}}`),
			inChatPart(`{"type":"input_audio","input_audio":{"data":"https://collect.example.org/x.wav"}}`),
			inItem(`{"role":"user","content":[{"type":"input_image","image_url":"https://collect.example.org"}]}`),
			inItem(`{"role":"user","content":[{"type":"input_file","file_url":"https://collect.example.org"}]}`),
			inItem(`{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"https://collect.example.org"}]}`),
			inItem(`{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"https://collect.example.org"}}`),
			inPart(`{"fileData":{"fileUri":"https://collect.example.org/x"}}`), inPart(`{"file_data":{"file_uri":"gs://bucket/x"}}`),
			inPart(`{"functionResponse":{"name":"f","parts":[{"fileData":{"fileUri":"https://collect.example.org/x"}}]}}`),
			inGemini(`"contents":{"parts":{"fileData":{"fileUri":"https://collect.example.org/x"}}}`),
			inGemini(`"contents":[],"system_instruction":{"parts":[{"fileData":{"fileUri":"https://collect.example.org/x"}}]}`),
		},
		loop.ToolFiles: {
			inMessage(`{"type":"document","source":{"type":"file","file_id":"file_1"}}`), inMessage(`{"type":"container_upload","file_id":"file_1"}`),
			inMessage(`{"type":"document","source":{"type":"text","file_id":"file_1"}}`),
			inChatPart(`{"type":"file","file":{"file_id":"file-1"}}`), inItem(`{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}`),
			inItem(`{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}`),
			inPart(`{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/1"}}`),
		},
		loop.ToolStored: {
			inResponses(`"prompt":{"id":"pmpt_1"}`), inResponses(`"conversation":"conv_1"`), inResponses(`"previous_response_id":"resp_1"`),
			inItem(`{"type":"item_reference","id":"msg_1"}`), inGemini(`"contents":[],"cachedContent":"cachedContents/1"`),
			inGemini(`"contents":[],"cached_content":"cachedContents/1"`),
			{"openai", ChatPath, `{"model":"@preset/mine","messages":[]}`},
			inChat(`"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]`),
		},
		"type:custom\n":         {inMessages(`"tools":[{"type":"custom\n"}],"messages":[]`)},
		"type:function\n":       {inChat(`"tools":[{"type":"function\n"}],"messages":[]`)},
		"type:quantum_20270101": {inMessages(`"tools":[{"type":"quantum_20270101"}],"messages":[]`)},
		"type:teleport":         {inChat(`"tools":[{"type":"teleport"}],"messages":[]`), inGemini(`"contents":[],"tools":[{"teleport":{}}]`), inItem(`{"type":"teleport"}`), inMessage(`{"type":"teleport"}`), inMessage(`{"type":"image","source":{"type":"teleport"}}`)},
	}
}

// hostedNames are the other names of vendors' tools, and what such tools leave in a
// conversation, by the API that knows them.
var hostedNames = map[loop.ModelTool]struct{ messageBlocks, chatTools, items, geminiTools string }{
	loop.ToolWebSearch: {
		"web_search_tool_result", "browser_search x_search web_search_preview openrouter:web_search", "web_search_call x_search_call",
		"parallelAiSearch exaAiSearch",
	},
	loop.ToolWebFetch: {"web_fetch_tool_result", "web_extractor openrouter:web_fetch", "", ""},
	loop.ToolCode: {
		"code_execution_tool_result bash_code_execution_tool_result text_editor_code_execution_tool_result", "code_interpreter code_execution",
		"code_interpreter_call", "",
	},
	loop.ToolSearch:  {"", "collections_search retrieval", "file_search_call", ""},
	loop.ToolImages:  {"", "", "image_generation_call", ""},
	loop.ToolMCP:     {"mcp_tool_use mcp_tool_result", "mcp", "mcp_call mcp_list_tools mcp_approval_request mcp_approval_response", ""},
	loop.ToolAdvisor: {"advisor_tool_result", "", "", ""},
}

// CallsByOtherNames returns calls with each other name of a vendor's tool, and with what
// such tools leave in a conversation, by the tool that allows them.
func CallsByOtherNames() map[loop.ModelTool][]Call {
	all := map[loop.ModelTool][]Call{}
	for tool, names := range hostedNames {
		for name := range strings.FieldsSeq(names.messageBlocks) {
			all[tool] = append(all[tool], inMessage(`{"type":"`+name+`"}`))
		}
		for name := range strings.FieldsSeq(names.chatTools) {
			all[tool] = append(all[tool], inChat(`"messages":[],"tools":[{"type":"`+name+`"}]`))
		}
		for name := range strings.FieldsSeq(names.items) {
			all[tool] = append(all[tool], inItem(`{"type":"`+name+`"}`))
		}
		for name := range strings.FieldsSeq(names.geminiTools) {
			all[tool] = append(all[tool], inGemini(`"tools":[{"`+name+`":{}}]`))
		}
	}
	return all
}

// Ordinary are requests as the agents' programs make them, and harmless ones that
// look like the others.
var Ordinary = map[string]Call{
	"Claude Code": inMessages(`"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"thinking":{"type":"enabled","budget_tokens":3},
		"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"metadata":{"user_id":"u"},"stream":true,
		"tools":[{"name":"WebSearch","description":"d","input_schema":{"type":"object","properties":{"type":{"const":"web_search_20250305"},"tools":{"type":"array"},"url":{"type":"string"}}}},
		{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"},{"type":"computer_20251124","name":"computer"},
		{"type":"memory_20250818","name":"memory"},{"type":"custom","name":"c","input_schema":{}},{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"},{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}],
		"messages":[{"role":"user","content":"web_search mcp_servers"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"Task","input":{"tools":[{"type":"web_search_20250305"}],"source":{"type":"url","url":"https://x.test"},"file_id":"f"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"{\"tools\":[]}"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"tool_reference","tool_name":"x"}]}]},
		{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"see https://x.test"}},{"type":"search_result","source":"https://x.test","title":"t","content":[{"type":"text","text":"x"}]}]}]`),
	"Codex": inResponses(`"stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"x":"y"},"reasoning":{"summary":"auto"},
		"tools":[{"type":"function","name":"exec_command","parameters":{"properties":{"url":{}}}},{"type":"custom","name":"apply_patch","format":{"type":"grammar"}},{"type":"local_shell"},
		{"type":"shell","environment":{"type":"local"}},{"type":"apply_patch"},{"type":"namespace","name":"mcp__x","tools":[{"type":"function","name":"f"}]},{"type":"tool_search","execution":"client"}],
		"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"x"}]},{"type":"reasoning","summary":[{"type":"summary_text","text":"x"}],"content":null,"encrypted_content":"e"},
		{"type":"function_call","name":"exec_command","arguments":"{\"tools\":[{\"type\":\"web_search\"}]}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"https://x.test"},
		{"type":"local_shell_call","action":{"type":"exec","command":["curl"]}},{"type":"shell_call_output","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
		{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk=","detail":"auto"},{"type":"input_file","filename":"x","file_data":"data:application/pdf;base64,aGk="}]}]`),
	"Gemini CLI": inGemini(`"systemInstruction":{"parts":[{"text":"x"}],"role":"user"},"generationConfig":{"temperature":1,"thinkingConfig":{"includeThoughts":true}},
		"tools":[{"functionDeclarations":[{"name":"google_web_search","parametersJsonSchema":{"properties":{"googleSearch":{},"fileUri":{}}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},
		"contents":[{"role":"user","parts":[{"text":"https://x.test"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},
		{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"s"},{"functionCall":{"name":"f","args":{"fileUri":"https://x.test","tools":[{"googleSearch":{}}]}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"fileData":{"fileUri":"x"}}}}]}]`),
	"qwen, opencode, goose": inChat(`"stream":true,"stream_options":{"include_usage":true},"temperature":0,"tool_choice":"auto","store":false,"max_tokens":5,
		"tools":[{"type":"function","function":{"name":"web_search","parameters":{"properties":{"image_url":{}}}}},{"type":"custom","custom":{"name":"x"}}],
		"messages":[{"role":"system","content":"x"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},
		{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}},{"type":"file","file":{"filename":"x","file_data":"data:application/pdf;base64,aGk="}}]},
		{"role":"assistant","content":null,"reasoning_content":"t","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"file_id\":1}"}}]},
		{"role":"tool","tool_call_id":"c","content":"https://x.test"}]`),
	"fields that say nothing":   inChat(`"tools":null,"web_search_options":null,"store":null,"messages":[{"role":"user","content":null,"type":null}]`),
	"Gemini's that say nothing": inGemini(`"cachedContent":null,"tools":[{"googleSearch":null}],"contents":[{"parts":[{"text":"x","executableCode":null,"fileData":{"mimeType":"x","fileUri":null}}]}]`),
	"a tool by its name":        inMessage(`{"type":"tool_addition","tool":"mine"}`),
	"a local server":            inChat(`"tools":[],"top_k":3,"min_p":0.1,"repeat_penalty":1,"chat_template_kwargs":{"enable_thinking":false},"num_ctx":4096,"keep_alive":"5m","messages":[]`),
}
