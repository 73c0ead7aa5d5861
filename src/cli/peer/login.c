/*
 * How we authenticate to a server over HTTP: as the options say, or by OAuth with stored tokens and
 * a new log-in if a user is present. Links are shown in full and never opened.
 */
#include <string.h>
#include <strings.h>

#include "cli/common/home.h"
#include "cli/peer/internal.h"
#include "cli/common/safe.h"

static void tell_store(struct peer *p)
{
	if (p->store)
		return;
	fputs("This log-in will not be kept: ", peer_err(p));
	safe_puts(stderr, str_of(p->store_why.msg));
}

static bool may_ask(const struct peer *p)
{
	if (p->o->login == PEER_LOGIN_AUTO)
		return isatty(STDERR_FILENO);
	return p->o->login != PEER_LOGIN_NEVER;
}

static void on_browse(void *owner, const char *url)
{
	struct peer *p = owner;

	if (!may_ask(p)) {
		mcp_oauth_give_up(p->oauth);
		return;
	}
	p->logging_in = true;
	tell_store(p);
	fputs("To log in, open this address in a browser on this machine:\n\n  ", peer_err(p));
	safe_line(stderr, str_of(url));
	fputs("\n\nWaiting for it …\n", stderr);
}

static void on_device(void *owner, const char *url, const char *code, const char *complete,
		      unsigned expires_s)
{
	struct peer *p = owner;

	if (!may_ask(p)) {
		mcp_oauth_give_up(p->oauth);
		return;
	}
	p->logging_in = true;
	tell_store(p);
	fputs("To log in, open this address in any browser:\n\n  ", peer_err(p));
	safe_line(stderr, str_of(url));
	fputs("\n\nand type this code: ", stderr);
	safe_line(stderr, str_of(code));
	if (complete) {
		fputs("\n\nor open this one, which has it:\n\n  ", stderr);
		safe_line(stderr, str_of(complete));
	}
	fprintf(stderr, "\n\nWaiting for it, at most %u minutes …\n", (expires_s + 59) / 60);
}

static void on_settled(void *owner, const struct err *e)
{
	struct peer *p = owner;

	p->logging_in = false;
	if (!e && may_ask(p))
		fputs("Logged in.\n", peer_err(p));
}

static const struct mcp_oauth_handler handler = {
	.browse = on_browse,
	.device = on_device,
	.settled = on_settled,
};

static bool has_authorization(const struct peer *p)
{
	for (size_t i = 0; i < p->target.headers_n; i++) {
		if (strcasecmp(p->headers[i].name, "authorization") == 0)
			return true;
	}
	return false;
}

/* The store may report only later that it can't be written. */
static void on_forgotten(void *owner, const struct err *e)
{
	int *status = owner;

	if (e)
		*status = cli_fail(e);
}

static int login_forget(struct peer *p, int *status, struct err *e)
{
	if (!p->o->url)
		return err_set(e, ERR_INVALID, "name the server with --url URL");
	if (peer_target(p, e) < 0 || peer_login(p, e) < 0)
		return -1;
	if (p->oauth && !p->store) {
		*e = p->store_why;
		return -1;
	}
	return p->oauth ? mcp_oauth_forget(p->oauth, on_forgotten, status, e)
			: err_set(e, ERR_INVALID, "%.80s has no log-in", p->o->url);
}

int peer_logout(const struct verb_input *in, const struct peer_options *o)
{
	AUTO(arena_free) struct arena *arena = arena_new(1 << 20);
	autofree struct peer *p = calloc(1, sizeof(*p));
	struct err e = ERR_INIT;
	int status = 0;

	if (!p || !arena || uv_loop_init(&p->loop) < 0) {
		err_set(&e, ERR_LIMIT, "no event loop");
		return cli_fail(&e);
	}
	p->in = in;
	p->o = o;
	p->arena = arena;
	if (login_forget(p, &status, &e) < 0)
		status = e.code == ERR_INVALID ? cli_wrong_usage(in->verb, &e) : cli_fail(&e);
	if (p->oauth)
		mcp_oauth_close(p->oauth, NULL, NULL);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	uv_loop_close(&p->loop);
	mcp_oauth_store_free(p->store);
	return status;
}

int peer_login(struct peer *p, struct err *e)
{
	AUTO(secret_free) struct secret *secret = NULL;
	struct mcp_oauth_options o = {
		.server = p->target.url,
		.grant = p->o->login == PEER_LOGIN_DEVICE ? MCP_OAUTH_DEVICE : MCP_OAUTH_CODE,
		.client = { .id = p->o->client_id },
		.client_name = "Holt",
		.scope = p->o->scope,
		.private_ok = p->o->private_ok,
		.handler = &handler,
		.owner = p,
	};
	char path[PATH_MAX];

	if (!p->target.url || p->target.unix_socket || has_authorization(p))
		return 0;
	if (p->o->client_secret) {
		secret = peer_secret_file(p->o->client_secret, e);
		if (!secret)
			return -1;
		o.client.secret = arena_dup(p->arena, secret_expose(secret, "given to the log-in"),
					    e);
		if (!o.client.secret)
			return -1;
	}
	/* Most servers need no log-in, so a missing token store is reported only when needed. */
	if (home_file("oauth", path, &p->store_why) == 0)
		p->store = mcp_oauth_store_open(path, &p->store_why);
	o.store = p->store;
	p->oauth = mcp_oauth_new(&p->loop, &o, e);
	if (!p->oauth)
		return -1;
	p->target.auth = mcp_oauth_auth(p->oauth);
	return 0;
}
