/* Tools that answer at once, with all kinds of content. */
#include <stdarg.h>
#include <stdio.h>

#include "everything.h"

/* A red pixel. */
static const unsigned char png[] = {
	0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
	0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
	0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
	0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0xf7, 0x03, 0x41,
	0x43, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

/* One sample of silence. */
static const unsigned char wav[] = {
	0x52, 0x49, 0x46, 0x46, 0x26, 0x00, 0x00, 0x00, 0x57, 0x41, 0x56, 0x45,
	0x66, 0x6d, 0x74, 0x20, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00,
	0x40, 0x1f, 0x00, 0x00, 0x80, 0x3e, 0x00, 0x00, 0x02, 0x00, 0x10, 0x00,
	0x64, 0x61, 0x74, 0x61, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
};

const struct mcp_str picture = { (const char *)png, sizeof(png) };
const struct mcp_str sound = { (const char *)wav, sizeof(wav) };

void say(struct mcp_call *c, const char *fmt, ...)
{
	mcp_autofree char *text = NULL;
	struct mcp_err e;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n >= 0) {
		mcp_call_text(c, (struct mcp_str){ text, (size_t)n });
		return;
	}
	text = NULL;
	mcp_err_set(&e, MCP_ERR_LIMIT, "out of memory");
	mcp_call_fail(c, &e);
}

const char *text_of(struct mcp_call *c, const struct mcp_json_val *object, const char *member)
{
	struct mcp_str s = mcp_json_str(mcp_json_get(object, member));
	struct mcp_err e;
	const char *z = mcp_arena_dup(mcp_call_arena(c), s, &e);

	return z ? z : "";
}

const char *json_of(struct mcp_call *c, const struct mcp_json_val *v)
{
	mcp_autobuf struct mcp_buf b = MCP_BUF_INIT(1 << 20);
	struct mcp_json_writer w = mcp_json_writer(&b);
	struct mcp_err e;
	const char *z;

	mcp_json_write_val(&w, v);
	if (!v || mcp_json_write_done(&w, &e) < 0)
		return "{}";
	z = mcp_arena_dup(mcp_call_arena(c), mcp_buf_str(&b), &e);
	return z ? z : "{}";
}

static void done(struct mcp_call *c, const struct mcp_content *content, size_t n)
{
	mcp_call_done(c, &(struct mcp_result){ .content = content, .content_n = n });
}

struct echo {
	struct mcp_str message;
};

static const struct mcp_field echo_fields[] = {
	MCP_FIELD(struct echo, message, .flags = MCP_FIELD_REQUIRED | MCP_FIELD_NUL_OK,
		  .doc = "What to say."),
};
static const struct mcp_field_table echo_table = MCP_FIELD_TABLE(struct echo, echo_fields);

void run_echo(struct mcp_call *c)
{
	struct echo args;
	struct mcp_err e;

	if (mcp_call_decode(c, &echo_table, &args, &e) < 0)
		mcp_call_fail(c, &e);
	else
		mcp_call_text(c, args.message);
}

void run_add(struct mcp_call *c)
{
	const struct mcp_json_val *args = mcp_call_args(c);

	say(c, "%.17g",
	    mcp_json_real(mcp_json_get(args, "a")) + mcp_json_real(mcp_json_get(args, "b")));
}

void run_text(struct mcp_call *c)
{
	say(c, "This is a simple text response for testing.");
}

void run_image(struct mcp_call *c)
{
	done(c, &(struct mcp_content){ MCP_IMAGE, .data = picture, .mime = "image/png" }, 1);
}

void run_audio(struct mcp_call *c)
{
	done(c, &(struct mcp_content){ MCP_AUDIO, .data = sound, .mime = "audio/wav" }, 1);
}

void run_resource(struct mcp_call *c)
{
	const struct mcp_content content = {
		MCP_RESOURCE,
		.uri = "test://embedded-resource",
		.mime = "text/plain",
		.text = MCP_STR_LIT("This is an embedded resource content."),
	};

	done(c, &content, 1);
}

void run_link(struct mcp_call *c)
{
	done(c, &(struct mcp_content){ MCP_LINK, .link = &resources[0] }, 1);
}

void run_mixed(struct mcp_call *c)
{
	const struct mcp_content content[] = {
		{ MCP_TEXT, .text = MCP_STR_LIT("Multiple content types test:"),
		  .annotations = { .audience = MCP_FOR_USER,
				   .has_priority = true,
				   .priority = 0.5 } },
		{ MCP_IMAGE, .data = picture, .mime = "image/png" },
		{ MCP_RESOURCE, .uri = "test://mixed-content-resource", .mime = "application/json",
		  .text = MCP_STR_LIT("{\"test\":\"data\",\"value\":123}") },
	};

	done(c, content, MCP_ARRAY_LEN(content));
}

void run_weather(struct mcp_call *c)
{
	mcp_call_done(c, &(struct mcp_result){
				 .structured = MCP_STR_LIT(
					 "{\"temperature\":22.5,\"conditions\":\"Sunny\"}") });
}

void run_error(struct mcp_call *c)
{
	const struct mcp_content text = {
		MCP_TEXT,
		.text = MCP_STR_LIT("This tool intentionally returns an error for testing")
	};

	mcp_call_done(c,
		      &(struct mcp_result){ .content = &text, .content_n = 1, .is_error = true });
}

void run_schema(struct mcp_call *c)
{
	say(c, "JSON Schema 2020-12 tool called with: %s", json_of(c, mcp_call_args(c)));
}

void run_header(struct mcp_call *c)
{
	say(c, "region: %s", text_of(c, mcp_call_args(c), "region"));
}
