/* POST /v1/preview: a link for people to a server in a sandbox. */
#include "hub/core/preview.h"

#include "door/http/common.h"

struct preview_body {
	struct str sandbox;
	uint32_t port, ttl_seconds;
};
static const struct field body_fields[] = {
	API_SANDBOX_ROW(struct preview_body),
	FIELD(struct preview_body, port, .flags = FIELD_REQUIRED, .min = 1, .max = 65535,
	      .doc = "The TCP port in it that the server listens on."),
	FIELD(struct preview_body, ttl_seconds, .min = 1, .max = PREVIEW_TTL_MAX,
	      .def = DEFAULT_INT(PREVIEW_TTL_DEFAULT), .doc = "How long the link is good for."),
};
static const struct field_table body_table = FIELD_TABLE(struct preview_body, body_fields);

struct preview_params {
	struct preview_body body;
};
static const struct field parts[] = {
	FIELD_OBJECT(struct preview_params, body, body_table, .flags = FIELD_REQUIRED,
		     .doc = "What is to be seen."),
};
static const struct field_table input = FIELD_TABLE(struct preview_params, parts);

struct preview_view {
	struct str url;
	int64_t expires_unix;
};
static const struct field view_fields[] = {
	FIELD(struct preview_view, url, .flags = FIELD_REQUIRED,
	      .doc = "Whoever has it sees what the server shows; it is for one browser's address line."),
	FIELD(struct preview_view, expires_unix, .flags = FIELD_REQUIRED,
	      .doc = "When it is over, in seconds since 1970."),
};
static const struct field_table view_table = FIELD_TABLE(struct preview_view, view_fields);

static int make(struct call *c, const struct preview_body *p, char url[PREVIEW_URL_MAX],
		int64_t *ret_expires, struct err *e)
{
	const struct previews *all = call_previews(c);
	struct life *l = call_life(c, p->sandbox, e);

	if (!l)
		return -1;
	if (!all)
		return err_set(e, ERR_UNSUPPORTED,
			       "this server shows no previews: holt serve --preview does");
	return preview_make(all, l, (uint16_t)p->port, p->ttl_seconds, url, ret_expires, e);
}

static void run(struct call *c, const void *params)
{
	struct err e = ERR_INIT;
	char url[PREVIEW_URL_MAX];
	struct preview_view view = { .url = STR_NONE };

	if (make(c, &((const struct preview_params *)params)->body, url, &view.expires_unix, &e) <
	    0) {
		call_fail(c, &e);
		return;
	}
	view.url = str_of(url);
	call_answer(c, &view);
}

static const struct api_route rows[] = {
	{ .id = "preview",
	  .op = &(const struct
		  op){ .action = "port.preview",
		       .doc = "A link by which a browser sees what a server in a sandbox shows, under a name "
			      "of its own.",
		       .effect = OP_WRITE,
		       .request = &input,
		       .target = OP_TARGET(struct preview_params, body.sandbox),
		       .result = &view_table,
		       .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/preview",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_preview = API_RESOURCE(rows);
