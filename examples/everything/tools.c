/* The table of tools. */
#include "everything.h"

#define NOTHING "{\"type\":\"object\",\"properties\":{}}"
#define TEXT(name, doc)                                                                            \
	"{\"type\":\"object\",\"properties\":{\"" name                                             \
	"\":{\"type\":\"string\",\"description\":\"" doc "\"}},\"required\":[\"" name "\"]}"

static const char numbers[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"a\":{\"type\":\"number\",\"description\":\"One.\"},"
	"\"b\":{\"type\":\"number\",\"description\":\"The other.\"}},\"required\":[\"a\",\"b\"]}";

static const char weather[] = "{\"type\":\"object\",\"properties\":{"
			      "\"temperature\":{\"type\":\"number\",\"description\":\"In °C.\"},"
			      "\"conditions\":{\"type\":\"string\"}},"
			      "\"required\":[\"temperature\",\"conditions\"]}";

static const char slow[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"seconds\":{\"type\":\"number\",\"minimum\":0,\"maximum\":600,\"description\":\"How "
	"long.\"},"
	"\"label\":{\"type\":\"string\",\"description\":\"Comes back in the result.\"}},"
	"\"required\":[\"seconds\"]}";

static const char mirrored[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"region\":{\"type\":\"string\",\"description\":\"Also in Mcp-Param-Region.\","
	"\"x-mcp-header\":\"Region\"},"
	"\"level\":{\"type\":\"integer\",\"description\":\"Also in Mcp-Param-Level.\","
	"\"x-mcp-header\":\"Level\"}},\"required\":[\"region\"]}";

static const char dialect[] =
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
	"\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\","
	"\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
	"\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
	"\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
	"\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
	"\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
	"\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
	"\"required\":[\"contactMethod\"]},"
	"\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
	"\"additionalProperties\":false}";

static const struct mcp_icon icon = { .src = "data:image/svg+xml,%3Csvg/%3E",
				      .mime = "image/svg+xml",
				      .sizes = "any" };

#define TOOL(name_, input, run_, doc, ...)                                                         \
	{                                                                                          \
		.name = (name_), .input_schema = (input), .run = (run_), .description = (doc),     \
		__VA_ARGS__                                                                        \
	}

struct mcp_tool tools[] = {
	TOOL("echo", TEXT("message", "What to say."), run_echo, "Says it.", .title = "Echo",
	     .read_only = MCP_YES, .idempotent = MCP_YES, .icons = { &icon, 1 }),
	TOOL("add", numbers, run_add, "The sum of two numbers.", .read_only = MCP_YES),

	TOOL("test_simple_text", NOTHING, run_text, "One text."),
	TOOL("test_image_content", NOTHING, run_image, "One image."),
	TOOL("test_audio_content", NOTHING, run_audio, "One sound."),
	TOOL("test_embedded_resource", NOTHING, run_resource, "One embedded resource."),
	TOOL("test_resource_link", NOTHING, run_link, "A link to a resource."),
	TOOL("test_multiple_content_types", NOTHING, run_mixed, "A text, an image, a resource."),
	TOOL("test_structured_content", NOTHING, run_weather, "Structured content, by a schema.",
	     .output_schema = weather),
	TOOL("test_error_handling", NOTHING, run_error, "Fails."),
	TOOL("json_schema_2020_12_tool", dialect, run_schema,
	     "Has a schema of many keywords, which is listed as it is."),
	TOOL("test_x_mcp_header", mirrored, run_header, "Has arguments that are headers as well."),

	TOOL("test_tool_with_logging", NOTHING, run_logging, "Logs three times, 50 ms apart."),
	TOOL("test_logging_tool", NOTHING, run_log_once, "Logs once."),
	TOOL("test_tool_with_progress", NOTHING, run_progress, "Tells its progress: 0, 50, 100."),
	TOOL("test_reconnection", NOTHING, run_reconnection,
	     "Has the client disconnected, and goes on."),
	TOOL("test_trigger_tool_change", NOTHING, run_tool_change, "Changes the list of tools."),
	TOOL("test_trigger_prompt_change", NOTHING, run_prompt_change,
	     "Changes the list of prompts."),
	TOOL("test_trigger_resource_change", NOTHING, run_resource_change,
	     "Says that test://watched-resource has changed."),

	TOOL("test_sampling", TEXT("prompt", "What to ask the model."), run_sampling,
	     "Asks the client's model."),
	TOOL("test_elicitation", TEXT("message", "What to ask the user."), run_elicitation,
	     "Asks the user."),
	TOOL("test_elicitation_url", NOTHING, run_elicitation_url, "Sends the user to a page."),
	TOOL("test_elicitation_sep1034_defaults", NOTHING, run_defaults,
	     "Asks the user, with a default for each field."),
	TOOL("test_elicitation_sep1330_enums", NOTHING, run_enums,
	     "Asks the user to choose, in five ways."),
	TOOL("test_missing_capability", NOTHING, run_missing, "Needs sampling."),
	TOOL("test_streaming_elicitation", NOTHING, run_streaming,
	     "Tells its progress, then asks the user."),
	TOOL("test_input_required_result_elicitation", NOTHING, run_ask_name,
	     "Asks the user for a name."),
	TOOL("test_input_required_result_sampling", NOTHING, run_ask_capital, "Asks the model."),
	TOOL("test_input_required_result_list_roots", NOTHING, run_ask_roots,
	     "Asks for the roots."),
	TOOL("test_input_required_result_request_state", NOTHING, run_ask_state,
	     "Asks the user, and keeps a state meanwhile."),
	TOOL("test_input_required_result_multiple_inputs", NOTHING, run_ask_many,
	     "Asks the user, the model and for the roots at once."),
	TOOL("test_input_required_result_multi_round", NOTHING, run_ask_rounds,
	     "Asks the user twice, the second time by what was said the first time."),
	TOOL("test_input_required_result_tampered_state", NOTHING, run_ask_state,
	     "Asks the user, with a state that must come back as it was."),
	TOOL("test_input_required_result_capabilities", NOTHING, run_ask_what_it_can,
	     "Asks what the client can be asked."),

	TOOL("greet", TEXT("name", "Whom."), run_greet, "Greets, never as a task."),
	TOOL("slow_compute", slow, run_slow, "Takes its time, as a task where that can be.",
	     .task = MCP_TASK_OPTIONAL),
	TOOL("failing_job", NOTHING, run_failing, "A task that fails.", .task = MCP_TASK_REQUIRED),
	TOOL("protocol_error_job", NOTHING, run_protocol_error,
	     "A task that ends with a protocol error.", .task = MCP_TASK_REQUIRED),
	TOOL("confirm_delete", TEXT("filename", "What to delete."), run_confirm,
	     "A task that asks the user before it goes on.", .task = MCP_TASK_OPTIONAL),
	TOOL("multi_input", NOTHING, run_multi_input,
	     "A task that asks the user two things at once.", .task = MCP_TASK_OPTIONAL),
	TOOL("test_tool_with_task", NOTHING, run_ask_then_task,
	     "Asks the user, and then becomes a task.", .task = MCP_TASK_REQUIRED),

	TOOL("test_dynamic_tool", NOTHING, run_text, "Comes and goes."),
};
const size_t tools_n = MCP_ARRAY_LEN(tools);
