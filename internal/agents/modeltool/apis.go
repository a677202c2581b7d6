package modeltool

import (
	"strings"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// addWords adds words to a table, all with the same tool.
func addWords(table map[string]loop.ModelTool, tool loop.ModelTool, words string) map[string]loop.ModelTool {
	if table == nil {
		table = map[string]loop.ModelTool{}
	}
	for word := range strings.FieldsSeq(words) {
		table[word] = tool
	}
	return table
}

// toolByType returns a function that reads a tool with a type. Known returns the
// tool of a type. A tool without a type is one of the program's own if it has one
// of the fields in own.
func toolByType(known func(kind string) (loop.ModelTool, bool), own ...string) func(n node) (loop.ModelTool, string) {
	return func(n node) (loop.ModelTool, string) {
		kinds := typesOf(n)
		for _, kind := range kinds {
			if tool, ok := known(kind); !ok {
				return loop.TypedTool(kind), kind
			} else if tool != clientSide {
				return tool, kind
			}
		}
		if len(kinds) > 0 {
			return clientSide, ""
		}
		for _, name := range own {
			if n.field(name) != nil {
				return clientSide, ""
			}
		}
		return loop.TypedTool(""), "without a type"
	}
}

// dated matches a type of Anthropic's with its date: each release has a new date.
var dated = lazyregexp.New(`^([a-z0-9_]+?)(?:_\d{8})?$`)

var messagesTools = map[string]loop.ModelTool{
	"custom": clientSide, "bash": clientSide, "text_editor": clientSide, "computer": clientSide, "memory": clientSide,
	"tool_search_tool_regex": clientSide, "tool_search_tool_bm25": clientSide, // They search the tools of the request itself.
	"web_search": loop.ToolWebSearch, "web_fetch": loop.ToolWebFetch, "code_execution": loop.ToolCode,
	"mcp_toolset": loop.ToolMCP, "mcp": loop.ToolMCP, "advisor": loop.ToolAdvisor,
}

// Messages is Anthropic's API. Fields that change the price or the model of an
// answer without a trace in its usage, such as speed and fallbacks, are not
// listed.
var Messages = &API{
	fields: addWords(map[string]loop.ModelTool{"mcp_servers": loop.ToolMCP, "mcpservers": loop.ToolMCP, "container": loop.ToolCode}, clientSide,
		`model messages max_tokens system tools tool_choice metadata stop_sequences stream temperature top_p top_k thinking
		service_tier context_management output_config output_format cache_control inference_geo anthropic_version`),
	blocks: addWords(map[string]loop.ModelTool{
		"container_upload": loop.ToolFiles, "web_search_tool_result": loop.ToolWebSearch, "web_fetch_tool_result": loop.ToolWebFetch,
		"code_execution_tool_result": loop.ToolCode, "bash_code_execution_tool_result": loop.ToolCode,
		"text_editor_code_execution_tool_result": loop.ToolCode, "mcp_tool_use": loop.ToolMCP, "mcp_tool_result": loop.ToolMCP,
		"advisor_tool_result": loop.ToolAdvisor,
	}, clientSide, `message text image document search_result thinking redacted_thinking tool_use tool_result server_tool_use tool_reference
		tool_search_tool_result tool_search_tool_search_result tool_addition tool_removal compaction fallback connector_text`),
	toolOf: toolByType(func(kind string) (loop.ModelTool, bool) {
		m := dated.FindStringSubmatch(kind)
		if m == nil {
			return "", false
		}
		tool, ok := messagesTools[m[1]]
		return tool, ok
	}, "name"),
}

// openAITools are the tools of OpenAI, of xAI, and of other compatible vendors.
var openAITools = map[string]loop.ModelTool{
	"function": clientSide, "custom": clientSide, "local_shell": clientSide, "apply_patch": clientSide,
	"computer": clientSide, "computer_use": clientSide, "computer_use_preview": clientSide,
	"namespace": clientSide, "tool_search": clientSide, // The tools in them are judged one by one.
	"web_search": loop.ToolWebSearch, "web_search_preview": loop.ToolWebSearch, "x_search": loop.ToolWebSearch,
	"browser_search": loop.ToolWebSearch, "builtin_function": loop.ToolWebSearch, "openrouter:web_search": loop.ToolWebSearch,
	"web_extractor": loop.ToolWebFetch, "openrouter:web_fetch": loop.ToolWebFetch,
	"code_interpreter": loop.ToolCode, "code_execution": loop.ToolCode, "shell": loop.ToolCode,
	"file_search": loop.ToolSearch, "collections_search": loop.ToolSearch, "retrieval": loop.ToolSearch,
	"image_generation": loop.ToolImages, "mcp": loop.ToolMCP,
}

// datedOpenAI matches a type with its date, such as
// web_search_preview_2025_03_11.
var datedOpenAI = lazyregexp.New(`^(.+?)(?:_\d{4}_\d\d_\d\d)?$`)

func openAITool(n node) (loop.ModelTool, string) {
	tool, kind := toolByType(func(kind string) (loop.ModelTool, bool) {
		m := datedOpenAI.FindStringSubmatch(kind)
		if m == nil {
			return "", false
		}
		tool, ok := openAITools[m[1]]
		return tool, ok
	}, "function")(n)
	if kind == "shell" && n.field("environment").field("type").text() == "local" {
		return clientSide, "" // The program runs the commands, not a container of the vendor.
	}
	return tool, kind
}

// Chat is OpenAI Chat Completions.
var Chat = &API{
	fields: addWords(addWords(addWords(nil, loop.ToolWebSearch,
		`web_search_options websearchoptions search_parameters searchparameters enable_search enablesearch search_options searchoptions
		web_search websearch search_settings searchsettings plugins`), loop.ToolMCP, `mcp_servers mcpservers`), clientSide,
		`model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata
		modalities n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_retention reasoning_effort
		response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs
		top_p user verbosity
		top_k top_a min_p typical_p tfs_z repetition_penalty repeat_penalty length_penalty min_tokens ignore_eos stop_token_ids
		skip_special_tokens spaces_between_special_tokens include_stop_str_in_output echo best_of use_beam_search bad_words
		truncate_prompt_tokens add_generation_prompt continue_final_message chat_template_kwargs mm_processor_kwargs
		guided_json guided_regex guided_choice guided_grammar structured_outputs grammar json_schema mirostat mirostat_tau mirostat_eta
		dynatemp_range dynatemp_exponent xtc_probability xtc_threshold samplers cache_prompt id_slot n_predict n_probs num_ctx num_predict
		keep_alive options think thinking enable_thinking preserve_thinking thinking_budget reasoning include_reasoning
		reasoning_format reasoning_split tool_stream parse_tool_calls parallel_tool_calls do_sample request_id usage provider transforms cache_control
		vl_high_resolution_images priority safe_prompt random_seed prompt_mode clear_thinking`),
	blocks: addWords(nil, clientSide, `message text refusal image_url input_audio audio_url video_url input_video file thinking reasoning function custom
		input_text output_text input_image input_file tool_result`),
	toolOf: openAITool,
}

// Responses is OpenAI Responses.
var Responses = &API{
	fields: addWords(addWords(nil, loop.ToolStored, `prompt conversation previous_response_id previousresponseid`), clientSide,
		`model input instructions include max_output_tokens max_tool_calls metadata parallel_tool_calls prompt_cache_key
		prompt_cache_retention prompt_cache_options reasoning safety_identifier service_tier store stream stream_options temperature text
		tool_choice tools top_logprobs top_p truncation user client_metadata context_management top_k min_p repetition_penalty`),
	blocks: addWords(map[string]loop.ModelTool{
		"item_reference": loop.ToolStored, "web_search_call": loop.ToolWebSearch, "x_search_call": loop.ToolWebSearch,
		"file_search_call": loop.ToolSearch, "code_interpreter_call": loop.ToolCode, "image_generation_call": loop.ToolImages,
		"mcp_call": loop.ToolMCP, "mcp_list_tools": loop.ToolMCP, "mcp_approval_request": loop.ToolMCP, "mcp_approval_response": loop.ToolMCP,
	}, clientSide, `message input_text output_text text refusal summary_text reasoning_text input_image input_file input_audio computer_screenshot
		encrypted_content reasoning function_call function_call_output custom_tool_call custom_tool_call_output local_shell_call
		local_shell_call_output shell_call shell_call_output apply_patch_call apply_patch_call_output computer_call computer_call_output
		tool_search_call tool_search_output additional_tools agent_message configuration_update compaction compaction_trigger compaction_summary context_compaction`),
	toolOf: openAITool,
}

// features are the headers that enable features, with the values that are
// allowed. A value for one of the vendor's own tools is allowed if the definition
// allows the tool. A star at the end of a value matches any rest: its date.
var features = map[string]map[string]loop.ModelTool{
	"Anthropic-Beta": addWords(map[string]loop.ModelTool{
		"web-search-*": loop.ToolWebSearch, "web-fetch-*": loop.ToolWebFetch, "code-execution-*": loop.ToolCode, "skills-*": loop.ToolCode,
		"mcp-client-*": loop.ToolMCP, "mcp-servers-*": loop.ToolMCP, "files-api-*": loop.ToolFiles, "advisor-tool-*": loop.ToolAdvisor,
	}, clientSide, `claude-code-* interleaved-thinking-* thinking-token-count-* thinking-display-updates-* thinking-resumption-*
		thinking-binding-controls-* redact-thinking-* dev-full-thinking-* context-management-* context-1m-* compact-* extended-cache-ttl-*
		prompt-caching-* cache-diagnosis-* cache-keepalive-* effort-* structured-outputs-* output-128k-* max-tokens-* token-counting-*
		token-efficient-tools-* fine-grained-tool-streaming-* computer-use-* tool-search-tool-* advanced-tool-use-* tool-examples-*
		mid-conversation-* inline-tools-* pdfs-* task-budgets-* per-turn-control-* timing-* context-hint-* claude-code-side-query-*
		auto-mode-classifier-* afk-mode-* dangerous-tool-use-* oauth-* bedrock-* vertex-*`),
	"Openai-Beta":           addWords(nil, clientSide, `responses=experimental`),
	"X-Codex-Beta-Features": addWords(nil, clientSide, `remote_compaction_v2`),
}
