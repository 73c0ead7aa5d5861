/*
 * client: uses all that an MCP server offers. It lists everything, calls each tool, reads each
 * resource, gets each prompt, and answers questions.
 *
 *	client URL
 *	client PROGRAM [ARGUMENT...]
 *
 * Forms are answered with their defaults. The official conformance suite is also run against this
 * client, and tells it in the environment what to do (MCP_CONFORMANCE_…).
 */
#include "client.h"
#include "login.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static void on_closed(void *owner)
{
	struct client *c = owner;

	login_close(c->login);
}

void leave(struct client *c, int status)
{
	c->status |= status;
	if (c->closing)
		return;
	c->closing = true;
	mcp_link_close(c->link, on_closed, c);
}

/* --- what the server does --- */

static void on_ready(void *owner)
{
	struct client *c = owner;

	printf("revision %s\n", mcp_client_version(mcp_link_client(c->link)));
	work(c);
}

static void on_over(void *owner, const struct mcp_err *e)
{
	fprintf(stderr, "client: %s\n", e->msg);
	leave(owner, 1);
}

static void accept_form(struct mcp_question *q)
{
	mcp_autobuf struct mcp_buf text = MCP_BUF_INIT(1 << 20);
	struct mcp_err e;

	if (mcp_buf_addf(&text, &e, "{\"action\":\"accept\",\"content\":") < 0 ||
	    mcp_form_defaults(mcp_question_params(q), &text, &e) < 0 ||
	    mcp_buf_add(&text, "}", 1, &e) < 0 ||
	    mcp_question_answer(q, mcp_buf_str(&text), &e) < 0)
		mcp_question_refuse(q, e.msg);
}

static void accept_with(struct mcp_question *q, struct mcp_str text)
{
	struct mcp_err e;

	if (mcp_question_answer(q, text, &e) < 0)
		mcp_question_refuse(q, e.msg);
}

static void on_asked(void *owner, struct mcp_question *q)
{
	static const struct mcp_str words = MCP_STR_LIT(
		"{\"role\":\"assistant\",\"model\":\"none\",\"stopReason\":\"endTurn\","
		"\"content\":{\"type\":\"text\",\"text\":\"What a question.\"}}");
	struct client *c = owner;

	if (strcmp(c->scenario, "sep-2322-client-request-state") == 0)
		work_aside(c, "test_mrtr_unrelated");
	switch (mcp_question_kind(q)) {
	case MCP_ASK_FORM:
		accept_form(q);
		break;
	case MCP_ASK_SAMPLING:
		accept_with(q, words);
		break;
	case MCP_ASK_ROOTS:
		accept_with(
			q, MCP_STR_LIT("{\"roots\":[{\"uri\":\"file:///tmp\",\"name\":\"tmp\"}]}"));
		break;
	default: /* nothing is opened without a person */
		accept_with(q, MCP_STR_LIT("{\"action\":\"decline\"}"));
	}
}

static void on_log(void *owner, const struct mcp_log_message *m)
{
	struct mcp_str text = mcp_json_str(m->data);

	printf("log: %.*s\n", MCP_STR_ARG(text));
}

static const struct mcp_client_handler handler = {
	.ready = on_ready,
	.over = on_over,
	.asked = on_asked,
	.log = on_log,
};

/* --- the beginning --- */

static const char *from_environment(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value ? value : otherwise;
}

static void read_environment(struct client *c)
{
	const char *context = getenv("MCP_CONFORMANCE_CONTEXT");
	struct mcp_err e;

	c->scenario = from_environment("MCP_CONFORMANCE_SCENARIO", "");
	c->modern = strcmp(from_environment("MCP_CONFORMANCE_PROTOCOL_VERSION", ""),
			   "2026-07-28") == 0;
	c->context = context ? mcp_json_parse(mcp_str_of(context), NULL, &e) : NULL;
}

static int start(struct client *c, char **argv, struct mcp_err *e)
{
	const struct mcp_client_options o = {
		.name = "client",
		.title = "Everything, from the other side",
		.version = "1.0.0",
		.can = MCP_CAN_ROOTS | MCP_CAN_SAMPLING | MCP_CAN_FORM | MCP_CAN_URL |
		       MCP_CAN_TASKS,
		.handler = &handler,
		.owner = c,
	};
	struct mcp_target t = { .owner = c };

	if (strstr(argv[0], "://"))
		t.url = argv[0];
	else
		t.argv = (const char *const *)argv;
	if (c->scenario[0])
		t.known = (struct mcp_found){ MCP_WIRE_HTTP, c->modern ? MCP_MODERN : MCP_LEGACY };
	if (t.url && strncmp(c->scenario, "auth/", 5) == 0) {
		c->login = login_new(c, t.url, e);
		if (!c->login)
			return -1;
		t.auth = login_auth(c->login);
	}
	c->link = mcp_connect(&c->loop, &t, &o, e);
	if (c->link)
		return 0;
	login_close(c->login);
	return -1;
}

int main(int argc, char **argv)
{
	struct client c = { .last = &c.jobs };
	struct mcp_err e = MCP_ERR_INIT;

	if (argc < 2) {
		fprintf(stderr, "usage: %s URL | PROGRAM [ARGUMENT...]\n", argv[0]);
		return 2;
	}
	setlinebuf(stdout);
	uv_loop_init(&c.loop);
	read_environment(&c);
	if (start(&c, argv + 1, &e) < 0) {
		fprintf(stderr, "client: %s\n", e.msg);
		c.status = 1;
	}
	uv_run(&c.loop, UV_RUN_DEFAULT);
	work_free(&c);
	mcp_json_free(c.context);
	uv_loop_close(&c.loop);
	return c.status;
}
