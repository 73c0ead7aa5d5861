#include "cli/serve/request.h"

#include <string.h>
#include <unistd.h>

#include "cli/common/verb.h"
#include "cli/common/file.h"
#include "cli/link/link.h"
#include "json/field/field.h"
#include "op/ops.h"

enum { SCHEMA_MAX = 1 << 20 };

static int request_ask(const char *path, int *ret_status, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	int64_t code;
	bool is_input = strcmp(path, "-") == 0;

	if ((is_input ? file_read_fd(STDIN_FILENO, "standard input", &text, e)
		      : file_read(path, &text, e)) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "POST", "/v1/run", buf_str(&text), &doc, e) < 0)
		return -1;
	if (!json_int64(json_get(json_root(doc), "exit_code"), &code))
		return err_set(e, ERR_TRANSPORT, "the hub's answer has no exit_code");
	*ret_status = (int)code;
	return hub_link_print(json_root(doc), e);
}

int request_run(const char *path)
{
	struct err e = ERR_INIT;
	int status = 0;

	return request_ask(path, &status, &e) < 0 ? hub_link_fail(&e) : status;
}

int request_print_schema(void)
{
	autobuf struct buf text = BUF_INIT(SCHEMA_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e = ERR_INIT;

	json_write_object(&w);
	json_write_key(&w, "$schema");
	json_write_text(&w, "https://json-schema.org/draft/2020-12/schema");
	json_write_key(&w, "title");
	json_write_text(&w, "The contract run of Holt");
	json_write_key(&w, "$ref");
	json_write_text(&w, "#/$defs/request");
	json_write_key(&w, "$defs");
	json_write_object(&w);
	json_write_key(&w, "request");
	field_schema(run_op.request, &w);
	json_write_key(&w, "response");
	field_schema(run_op.result, &w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	doc = json_write_done(&w, &e) < 0 ? NULL : json_parse(buf_str(&text), NULL, &e);
	return !doc || hub_link_print(json_root(doc), &e) < 0 ? cli_fail(&e) : 0;
}
