#include "cli/serve/request.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/verb.h"
#include "cli/common/file.h"
#include "cli/link/link.h"
#include "json/field/field.h"
#include "base/failure.h"
#include "op/network.h"
#include "op/ops.h"
#include "op/secret.h"

enum { SCHEMA_MAX = 1 << 20 };

/* Exit statuses of errors, none of which `holt run` has for a command that Holt could run but 124,
 * which is a timeout there, too. */
static const int request_statuses[ERR_FAILURES] = {
	[FAILURE_VALIDATION] = 120, [FAILURE_POLICY] = 121,  [FAILURE_GUEST] = 122,
	[FAILURE_CLEANUP] = 123,    [FAILURE_TIMEOUT] = 124, [FAILURE_TRANSPORT] = 125,
};

static int request_status_of(struct str failure)
{
	for (size_t i = 0; i < ERR_FAILURES; i++) {
		if (err_failure_names[i] && str_is(failure, err_failure_names[i]))
			return request_statuses[i];
	}
	return request_statuses[FAILURE_TRANSPORT];
}

/* One that the hub has not told. */
static int request_fail(const struct err *e)
{
	const struct err_info *i = err_info(e->code);
	autobuf struct buf text = BUF_INIT(SCHEMA_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err failed = *e;

	json_write_object(&w);
	json_write_key(&w, "error");
	json_write_object(&w);
	json_write_key(&w, "code");
	json_write_text(&w, i->name);
	json_write_key(&w, "failure");
	json_write_text(&w, err_failure_names[i->failure]);
	json_write_key(&w, "cause");
	json_write_text(&w, e->msg);
	json_write_key(&w, "remediation");
	json_write_text(&w, i->remediation);
	json_write_key(&w, "retryable");
	json_write_bool(&w, i->retryable);
	if (*e->pointer) {
		json_write_key(&w, "pointer");
		json_write_text(&w, e->pointer);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	doc = json_write_done(&w, &failed) < 0 ? NULL : json_parse(buf_str(&text), NULL, &failed);
	if (!doc || hub_link_print(json_root(doc), &failed) < 0)
		cli_fail(&failed);
	return request_statuses[i->failure];
}

/* Prints the hub's answer, with the id that REST has in a header. */
static int request_print_error(const struct json_val *error, const char *audit_id, struct err *e)
{
	autobuf struct buf text = BUF_INIT(SCHEMA_MAX);
	struct json_writer w = json_writer(&text);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it = json_iter(error);

	json_write_object(&w);
	json_write_key(&w, "error");
	json_write_object(&w);
	while (json_next(&it)) {
		json_write_key_str(&w, it.key);
		json_write_val(&w, it.val);
	}
	if (*audit_id) {
		json_write_key(&w, "audit_id");
		json_write_text(&w, audit_id);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	doc = json_write_done(&w, e) < 0 ? NULL : json_parse(buf_str(&text), NULL, e);
	return doc ? hub_link_print(json_root(doc), e) : -1;
}

/* ---- what it may reach --------------------------------------------------------------------- */

/* The hosts that the request wants. The hub refuses what is no host. */
static int request_wants(const struct json_val *root, const struct config_file *f,
			 struct net_grant *to, struct err *e)
{
	struct json_iter it = json_iter(json_get(json_get(root, "network"), "allow"));
	char text[NET_RULE_TEXT];
	int64_t port;

	while (json_next(&it)) {
		struct str host = json_str(json_get(it.val, "host"));
		const struct json_val *at = json_get(it.val, "port");

		if (!host.n || (at && !json_int64(at, &port)))
			continue;
		if (at)
			snprintf(text, sizeof(text), "%.*s:%lld", STR_CUT(host, 255),
				 (long long)port);
		else
			snprintf(text, sizeof(text), "%.*s", STR_CUT(host, 255));
		if (network_rules(f, str_of(text), to, e) < 0)
			return err_point(e, "/network/allow/%zu", it.index);
	}
	return 0;
}

static int request_check_network(const struct json_val *root, const struct network_options *o,
				 const struct config_file *f, struct err *e)
{
	autogrant struct net_grant wants = { .n = 0 };
	struct grants own = { .n_services = 0 };
	int rc = -1;

	if (net_grant_init(&wants, e) == 0 && request_wants(root, f, &wants, e) == 0 &&
	    grants_read(o, f, &own, e) == 0 &&
	    network_listed(f, STR_LIT("local"), &own.allow, e) == 0)
		rc = network_check_within(&wants, &own.allow,
					  "--allow and the operator's file let a request", e);
	if (rc < 0 && !*e->pointer)
		err_point(e, "/network/allow");
	grants_fini(&own);
	return rc;
}

/* ---- the secrets that it may have ------------------------------------------------------------ */

static bool request_has_word(const struct secret_words *own, struct str ref)
{
	for (size_t i = 0; i < own->n; i++) {
		if (str_eq(own->all[i].ref, ref))
			return true;
	}
	return false;
}

/* The hub refuses what is no reference. */
static int request_check_secrets(const struct json_val *root, const struct secret_options *o,
				 const struct config_file *f, struct err *e)
{
	struct json_iter it = json_iter(json_get(root, "secrets"));
	struct secret_words own;

	if (secret_words_read(&own, o, e) < 0)
		return -1;
	while (json_next(&it)) {
		struct str ref = json_str(json_get(it.val, "ref"));

		if (!ref.n || request_has_word(&own, ref) ||
		    secret_listed(f, STR_LIT("local"), ref))
			continue;
		err_set(e, ERR_DENIED,
			"neither --secret nor the operator's file lets a request have the secret "
			"%.*s",
			STR_CUT(ref, 64));
		return err_point(e, "/secrets/%.*s/ref", STR_CUT(it.key, 64));
	}
	return 0;
}

static int request_check(const struct json_val *root, const struct request_given *given,
			 struct err *e)
{
	AUTO(config_unref) struct config *c = config_find(given->config, e);

	if (!c)
		return -1;
	if (json_len(json_get(json_get(root, "network"), "allow")) > 0 &&
	    request_check_network(root, given->network, config_file(c), e) < 0)
		return -1;
	return request_check_secrets(root, given->secrets, config_file(c), e);
}

/* ---- the call ------------------------------------------------------------------------------ */

static int request_ask(const char *path, const struct request_given *given, int *ret_status,
		       struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *asked = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	const struct json_val *error;
	int64_t code;
	int http;
	bool is_input = strcmp(path, "-") == 0;

	if ((is_input ? file_read_fd(STDIN_FILENO, "standard input", &text, e)
		      : file_read(path, &text, e)) < 0)
		return -1;
	asked = json_parse(buf_str(&text), NULL, e);
	if (!asked)
		return err_set(e, ERR_INVALID, "the request is not JSON");
	if (request_check(json_root(asked), given, e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask_whole(l, "POST", "/v1/run", buf_str(&text), &doc, &http, e) < 0)
		return -1;
	error = json_get(json_root(doc), "error");
	if (http != 200) {
		*ret_status = request_status_of(json_str(json_get(error, "failure")));
		return request_print_error(error, hub_link_audit_id(l), e);
	}
	if (json_int64(json_get(json_root(doc), "exit_code"), &code))
		*ret_status = (int)code;
	else
		return err_set(e, ERR_TRANSPORT, "the hub's answer has no exit_code");
	return hub_link_print(json_root(doc), e);
}

int request_run(const char *path, const struct request_given *given)
{
	struct err e = ERR_INIT;
	int status = 0;

	return request_ask(path, given, &status, &e) < 0 ? request_fail(&e) : status;
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
