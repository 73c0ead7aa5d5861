/* Messages of protocol buffers: whatever the bytes are, what comes of them is JSON of a bounded
 * length, or they are refused. */
#include "door/http/proto.h"
#include "fuzz.h"

static const struct proto_field inner_fields[] = { { 1, "key", PROTO_TEXT },
						   { 2, "value", PROTO_BYTES } };
static const struct proto_message inner = PROTO(inner_fields);
static const struct proto_field fields[] = {
	{ 1, "command", PROTO_TEXT },
	{ 2, "args", PROTO_TEXT, .repeated = true },
	{ 3, "env", PROTO_MESSAGE, &inner, .repeated = true },
	{ 4, "open", PROTO_MESSAGE, &inner },
	{ 5, "timeoutSeconds", PROTO_INT },
	{ 6, "mode", PROTO_UINT },
	{ 7, "eof", PROTO_BOOL },
	{ 8, "data", PROTO_BYTES },
};
static const struct proto_message message = PROTO(fields);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf json = BUF_INIT(PROTO_JSON_MAX(n));
	struct json_options o = { .bytes = PROTO_JSON_MAX(n) };
	struct err e = ERR_INIT;
	struct json_doc *doc;

	if (proto_to_json(&message, (struct str){ (const char *)data, n }, &json, &e) < 0) {
		MUST(e.code == ERR_INVALID);
	} else {
		doc = json_parse(buf_str(&json), &o, &e);
		MUST(doc && json_type(json_root(doc)) == JSON_OBJECT);
		json_free(doc);
	}
	buf_fini(&json);
	return 0;
}
