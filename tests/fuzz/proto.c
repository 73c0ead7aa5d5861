/* Messages of protocol buffers: whatever the bytes are, what comes of them is JSON of a bounded
 * length, or they are refused. */
#include "door/http/proto.h"
#include "fuzz.h"

struct inner {
	struct str key, value;
};
static const struct field inner_fields[] = {
	FIELD(struct inner, key),
	FIELD(struct inner, value, .flags = FIELD_BYTES),
};
static const struct field_table inner = FIELD_TABLE(struct inner, inner_fields);

struct message {
	struct str command, data;
	struct field_strs args;
	struct {
		const struct inner *p;
		size_t n;
	} env;
	struct inner open;
	int32_t timeout;
	uint32_t mode;
	bool eof;
};
static const struct field fields[] = {
	FIELD(struct message, command),
	FIELD(struct message, args),
	FIELD_OBJECTS(struct message, env, inner),
	FIELD_OBJECT(struct message, open, inner),
	FIELD(struct message, timeout),
	FIELD(struct message, mode),
	FIELD(struct message, eof),
	FIELD(struct message, data, .flags = FIELD_BYTES),
};
static const struct field_table message = FIELD_TABLE(struct message, fields);

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
