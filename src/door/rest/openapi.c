/* GET /v1/openapi.json: all routes as an OpenAPI 3.1 document, printed from their rows. */
#include <stdio.h>

#include "door/http/common.h"
#include "door/connect/connect.h"
#include "json/document/put.h"

enum { DOCUMENT_MAX = 4 << 20 };

/* ---- errors -------------------------------------------------------------------------------- */

/* Errors of every route: host and origin, token, rate, defects, the end of the server. */
#define ANY                                                                                        \
	(API_MAY(INVALID_INPUT) | API_MAY(FORBIDDEN) | API_MAY(RATE_LIMITED) | API_MAY(INTERNAL) | \
	 API_MAY(UNAVAILABLE))
#define WITH_BODY                                                                                  \
	(API_MAY(INVALID_JSON) | API_MAY(BODY_TOO_LARGE) | API_MAY(UNSUPPORTED_MEDIA_TYPE))

static uint32_t errors_of(const struct api_route *r)
{
	uint32_t all = r->errors | ANY;

	if (!r->open)
		all |= API_MAY(UNAUTHORIZED);
	if (r->method & (HTTP_POST | HTTP_PATCH) || (r->method == HTTP_PUT && !r->streams))
		all |= WITH_BODY;
	if (r->kind == API_CONNECT)
		all |= API_MAY(UNSUPPORTED); /* encodings */
	return all;
}

/* As the reply has it. */
static int status_of(const struct api_route *r, enum api_code code)
{
	/* The door has looked at these before it was Connect's turn. */
	if (code == API_BODY_TOO_LARGE || code == API_UNSUPPORTED_MEDIA_TYPE ||
	    code == API_UPGRADE_REQUIRED)
		return api_codes[code].http;
	return r->kind == API_CONNECT ? api_connect_status(api_codes[code].connect)
				      : api_codes[code].http;
}

static const struct str error_schemas[] = {
	[API_REST] = STR_LIT("{\"$ref\":\"#/components/schemas/Error\"}"),
	[API_CONNECT] = STR_LIT("{\"$ref\":\"#/components/schemas/ConnectError\"}"),
	[API_PEOPLE] = STR_LIT("{\"$ref\":\"#/components/schemas/Error\"}"),
};

/* An error beside which a result stands. */
static void put_failed_schema(const struct api_route *r, struct json_writer *w)
{
	const struct field fields[] = {
		api_problem_table.rows[0],
		{ .name = "result",
		  .doc = "The result, as with status 200.",
		  .kind = FIELD_IS_OBJECT,
		  .table = r->failed },
	};

	field_schema(&(struct field_table){ .rows = fields, .n = ARRAY_LEN(fields) }, w);
}

static void put_error(const struct api_route *r, int status, struct json_writer *w)
{
	char key[12], text[512] = "";
	size_t n = 0;

	for (int i = 0; i < API_CODES; i++) {
		if ((errors_of(r) >> i & 1) && status_of(r, (enum api_code)i) == status)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "",
					      api_codes[i].name);
	}
	if (n == 0)
		return;
	snprintf(key, sizeof(key), "%d", status);
	json_put_object(w, key);
	json_put_text(w, "description", text);
	json_put_object(w, "content");
	json_put_object(w, "application/json");
	json_write_key(w, "schema");
	if (r->failed && status == api_codes[API_EXEC_TIMEOUT].http)
		put_failed_schema(r, w);
	else
		json_write_raw(w, error_schemas[r->kind]);
	json_write_object_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
}

/* ---- answers ------------------------------------------------------------------------------- */

static const struct str bytes_schema = STR_LIT("{\"type\":\"string\",\"format\":\"binary\"}");

static void put_answer_schema(const struct api_route *r, struct json_writer *w)
{
	const struct field_table *t = r->answer ? r->answer : r->op->result, *page = r->page;

	if (r->bare)
		page = t;
	if (r->bare || (r->projected && r->shape == API_ARRAY))
		t = t->rows->table;
	if (page) {
		json_write_object(w);
		json_put_array(w, "oneOf");
	}
	if (r->shape == API_ARRAY) {
		json_write_object(w);
		json_put_text(w, "type", "array");
		json_write_key(w, "items");
	}
	if (r->shape == API_TAR)
		json_write_raw(w, bytes_schema);
	else if (r->shape == API_DOCUMENT)
		json_write_raw(w, STR_LIT("{\"type\":\"object\"}"));
	else
		field_schema(t, w);
	if (r->shape == API_ARRAY)
		json_write_object_end(w);
	if (page) {
		field_schema(page, w);
		json_write_array_end(w);
		json_write_object_end(w);
	}
}

static const char *bytes_type(const struct api_route *r)
{
	return r->bytes_type ? r->bytes_type : "application/x-tar";
}

static const char *lines_type(const struct api_route *r)
{
	return r->sse ? "text/event-stream" : "application/x-ndjson";
}

static const char *answer_type(const struct api_route *r)
{
	return r->shape == API_LINES  ? lines_type(r)
	     : r->shape == API_FRAMES ? "application/connect+json"
	     : r->shape == API_TAR    ? bytes_type(r)
				      : "application/json";
}

static void put_answer(const struct api_route *r, struct json_writer *w)
{
	static const char *const texts[] = {
		[API_OBJECT] = "Done.",
		[API_ARRAY] = "Done.",
		[API_DOCUMENT] = "Done.",
		[API_LINES] = "A stream: the schema is of each line or event.",
		[API_TAR] = "A tar archive, as it is made; one without an end failed.",
		[API_FRAMES] = ("A stream: the schema is of each frame's message but the last, "
				"which has flag 2 and holds error if the call failed, with "
				"status 200 once the client is known and the body is of this "
				"type."),
	};

	json_put_object(w, "200");
	json_put_text(w, "description", texts[r->shape]);
	json_put_object(w, "content");
	json_put_object(w, answer_type(r));
	json_write_key(w, "schema");
	put_answer_schema(r, w);
	json_write_object_end(w);
	if (r->lines) {
		json_put_object(w, lines_type(r));
		json_write_key(w, "schema");
		field_schema(r->lines, w);
		json_write_object_end(w);
	}
	json_write_object_end(w);
	json_write_object_end(w);
}

enum { HEARD_MAX = 8 };

/* The client's messages. A projected body is "open" in the first of them. */
static void put_heard(const struct api_route *r, const struct api_parts *parts,
		      struct json_writer *w)
{
	struct field rows_[HEARD_MAX] = { {
		.name = "open",
		.doc = "What to run; in the first message only.",
		.kind = FIELD_IS_OBJECT,
		.table = &parts->places[OP_BODY],
		.elem = r->op->request->size,
	} };
	struct field_table t = *r->heard;

	if (!r->hear || r->listens || r->body || t.n >= HEARD_MAX) {
		field_schema(&t, w);
		return;
	}
	memcpy(&rows_[1], t.rows, t.n * sizeof(*t.rows));
	t.rows = rows_;
	t.n++;
	field_schema(&t, w);
}

/* In the order of their statuses, each once. */
static void put_responses(const struct api_route *r, struct json_writer *w)
{
	json_put_object(w, "responses");
	if (r->socket) {
		json_put_object(w, "101");
		json_put_text(w, "description",
			      "A WebSocket; x-websocket has the schemas of what each side says in "
			      "JSON.");
		json_write_object_end(w);
	} else {
		put_answer(r, w);
	}
	for (int status = 400; status < 600; status++)
		put_error(r, status, w);
	json_write_object_end(w);
}

/* ---- requests ------------------------------------------------------------------------------ */

static void put_parameter(const struct field *f, enum op_place place, struct json_writer *w)
{
	json_write_object(w);
	json_put_text(w, "name", f->name);
	json_put_text(w, "in", op_place_names[place]);
	json_put_bool(w, "required", place == OP_PATH || (f->flags & FIELD_REQUIRED));
	json_put_text(w, "description", f->doc);
	json_write_key(w, "schema");
	field_schema_row(f, w);
	json_write_object_end(w);
}

/* The parameter of the query that stands in for a header. */
static void put_choice(const struct op_member *m, const struct field_table *headers,
		       struct json_writer *w)
{
	for (size_t i = 0; m->or_query && i < headers->n; i++) {
		struct field f = headers->rows[i];

		if (strcmp(f.name, m->as) != 0)
			continue;
		f.name = m->or_query;
		put_parameter(&f, OP_QUERY, w);
	}
}

static void put_parameters(const struct api_route *r, const struct api_parts *parts,
			   struct json_writer *w)
{
	static const enum op_place order[] = { OP_PATH, OP_QUERY, OP_HEADER };

	json_put_array(w, "parameters");
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct field_table *t = &parts->places[order[i]];

		for (size_t k = 0; k < t->n; k++)
			put_parameter(&t->rows[k], order[i], w);
	}
	for (size_t i = 0; i < r->members.n; i++)
		put_choice(&r->members.p[i], &parts->places[OP_HEADER], w);
	json_write_array_end(w);
}

struct content {
	const char *type, *doc;
	bool required;
	const struct field_table *t; /* NULL: bytes */
};

static void put_request(const struct content *c, struct json_writer *w)
{
	json_put_object(w, "requestBody");
	json_put_text(w, "description", c->doc);
	json_put_bool(w, "required", c->required);
	json_put_object(w, "content");
	json_put_object(w, c->type);
	json_write_key(w, "schema");
	if (c->t)
		field_schema(c->t, w);
	else
		json_write_raw(w, bytes_schema);
	json_write_object_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void put_body(const struct api_route *r, const struct api_parts *parts,
		     struct json_writer *w)
{
	struct content c = { answer_type(r), r->heard ? r->heard->doc : NULL, true, r->heard };

	if (!r->heard)
		c = (struct content){ bytes_type(r),
				      r->bytes_type ? "An archive that was exported."
						    : "A tar archive: ustar, PAX or GNU's.",
				      true, NULL };
	if (r->streams)
		put_request(&c, w);
	if (!parts->body_doc)
		return;
	c = (struct content){ r->shape == API_FRAMES ? answer_type(r) : "application/json",
			      parts->body_doc, parts->body_required, &parts->places[OP_BODY] };
	put_request(&c, w);
}

/* ---- the document -------------------------------------------------------------------------- */

/* The noun of its operation. */
static struct str tag_of(const struct api_route *r)
{
	return r->kind == API_CONNECT ? STR_LIT("Connect")
				      : (struct str){ r->op->action, strcspn(r->op->action, ".") };
}

/* In the order in which routes first have them. */
static void put_tags(struct json_writer *w)
{
	json_put_array(w, "tags");
	for (size_t i = 0; api_route_at(i); i++) {
		size_t k = 0;

		while (!str_eq(tag_of(api_route_at(k)), tag_of(api_route_at(i))))
			k++;
		if (k < i)
			continue;
		json_write_object(w);
		json_put_str(w, "name", tag_of(api_route_at(i)));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_operation(const struct api_route *r, struct json_writer *w)
{
	struct api_parts parts;
	struct err e;

	if (api_parts_init(&parts, r, &e) < 0)
		json_write_fail(w, &e);
	json_put_object(w, r->method == HTTP_GET      ? "get"
			   : r->method == HTTP_DELETE ? "delete"
			   : r->method == HTTP_PUT    ? "put"
			   : r->method == HTTP_PATCH  ? "patch"
						      : "post");
	json_put_text(w, "operationId", r->id);
	json_put_array(w, "tags");
	json_write_str(w, tag_of(r));
	json_write_array_end(w);
	json_put_text(w, "summary", r->doc ? r->doc : r->op->doc);
	if (r->open)
		json_put_raw(w, "security", STR_LIT("[]"));
	put_parameters(r, &parts, w);
	put_body(r, &parts, w);
	put_responses(r, w);
	if (r->socket) { /* OpenAPI has no words for what is said after an upgrade. */
		json_put_object(w, "x-websocket");
		json_put_text(w, "subprotocol", r->socket);
		json_write_key(w, "client");
		put_heard(r, &parts, w);
		json_write_key(w, "server");
		field_schema(r->answer ? r->answer : r->op->result, w);
		json_write_object_end(w);
	}
	json_write_object_end(w);
	api_parts_fini(&parts);
}

/* All methods of a path stand together, where the first of them stands. */
static void put_path(size_t at, struct json_writer *w)
{
	const struct api_route *r, *first = api_route_at(at);

	for (size_t i = 0; i < at; i++) {
		if (strcmp(api_route_at(i)->path, first->path) == 0)
			return;
	}
	json_put_object(w, first->path);
	for (size_t i = at; (r = api_route_at(i)); i++) {
		if (strcmp(r->path, first->path) == 0)
			put_operation(r, w);
	}
	json_write_object_end(w);
}

static const struct str connect_error = STR_LIT(
	"{\"type\":\"object\",\"required\":[\"code\",\"message\"],\"properties\":{"
	"\"code\":{\"type\":\"string\"},\"message\":{\"type\":\"string\"},"
	"\"details\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}");

static void put_document(struct call *c, struct json_writer *w)
{
	struct str url = call_endpoint(c);

	json_write_object(w);
	json_put_text(w, "openapi", "3.1.0");
	json_put_object(w, "info");
	json_put_text(w, "title", "Holt");
	json_put_text(w, "version", HOLT_VERSION);
	json_write_object_end(w);
	json_put_raw(w, "security", STR_LIT("[{\"bearer\":[]}]"));
	json_put_array(w, "servers"); /* where the client has reached us */
	json_write_object(w);
	json_put_str(w, "url", url.n ? url : STR_LIT("/"));
	json_write_object_end(w);
	json_write_array_end(w);
	put_tags(w);
	json_put_object(w, "paths");
	for (size_t i = 0; api_route_at(i); i++)
		put_path(i, w);
	json_write_object_end(w);
	json_put_object(w, "components");
	json_put_object(w, "schemas");
	json_write_key(w, "Error");
	field_schema(&api_problem_table, w);
	json_put_raw(w, "ConnectError", connect_error);
	json_write_object_end(w);
	json_put_raw(w, "securitySchemes",
		     STR_LIT("{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}"));
	json_write_object_end(w);
	json_write_object_end(w);
}

static void openapi_run(struct call *c, const void *params)
{
	autobuf struct buf b = BUF_INIT(DOCUMENT_MAX);
	struct json_writer w = json_writer(&b);
	struct err e = ERR_INIT;

	put_document(c, &w);
	if (json_write_done(&w, &e) < 0)
		call_fail(c, &e);
	else
		exchange_answer_document(c, buf_take(&b));
}

static const struct api_route rows[] = {
	{ .id = "openapi",
	  .op = &(const struct op){ .action = "hub.openapi",
				    .doc = "Returns this document.",
				    .effect = OP_READ,
				    .request = &op_nothing_table,
				    .result = &op_nothing_table,
				    .run = openapi_run },
	  .method = HTTP_GET,
	  .path = "/v1/openapi.json",
	  .shape = API_DOCUMENT },
};
const struct api_resource api_openapi = API_RESOURCE(rows);
