/*
 * Drives mcp/oauth/oauth.h for tests/blackbox/test_oauth.py: it asks a protected server as a
 * transport would, and is the person with the browser.
 *
 *	mcp-oauth-host NAME=VALUE ...
 *
 * NAME is an option, or a member of struct setup. Prints a line for each event:
 *
 *	browse URL | device URL CODE SECONDS | want ISSUER | gone | settled ok|CODE
 *	response STATUS | error CODE MESSAGE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "http/client/client.h"
#include "mcp/oauth/oauth.h"

enum { BODY_MAX = 1 << 20, REQUESTS_MAX = 64 };

struct request {
	struct mcp_auth_request ask;
	struct http_exchange *x;
	int status;
	char challenge[8192], nonce[1024];
	bool refused; /* the ask is one of a refusal */
};

static struct {
	struct mcp_oauth_options oauth;
	const char *url; /* that is asked; the server's */
	const char *method;
	unsigned requests; /* one after the other */
	unsigned at_once; /* of them, at a time */
	bool off; /* the person does nothing */
	bool forge; /* somebody else answers first */
	bool replay; /* the answer comes twice */
	bool give_up; /* the person will not */
	bool forget; /* at the end */
	bool forget_amid; /* when the browser is out */
	bool linger; /* until standard input ends, when all is closed */
	const char *leave; /* when a word is asked for: "give_up", "forget", "close" */
	const char *say; /* the person's client id */
	const char *say_key, *say_method; /* and what it is proven with */
	const char *word; /* of the platform or provider */
} setup = { .method = "POST", .requests = 1, .at_once = 1 };

static uv_loop_t loop;
static struct http_client *web;
static struct mcp_oauth *oauth;
static struct mcp_oauth_store *store;
static struct request requests[REQUESTS_MAX];
static unsigned started, ended;
static char location[16384];

/* --- requests --- */

static void send_again(struct request *r);

static void on_forgotten(void *owner, const struct err *e)
{
	if (e)
		printf("error %s %s\n", err_info(e->code)->name, e->msg);
}

static void close_all(void)
{
	struct err e;

	if (setup.forget && mcp_oauth_forget(oauth, on_forgotten, NULL, &e) < 0)
		on_forgotten(NULL, &e);
	mcp_oauth_close(oauth, NULL, NULL);
	http_client_close(web, NULL, NULL);
}

static void next(void)
{
	while (started < setup.requests && started - ended < setup.at_once)
		send_again(&requests[started++]);
	if (ended == setup.requests)
		close_all();
}

static void request_over(struct request *r, const struct err *e)
{
	if (e)
		printf("error %s %s\n", err_info(e->code)->name, e->msg);
	else
		printf("response %d\n", r->status);
	fflush(stdout);
	ended++;
	next();
}

static void on_head(void *owner, struct http_exchange *x, int status)
{
	struct request *r = owner;
	autobuf struct buf challenge = BUF_INIT(sizeof(r->challenge) - 1);
	struct str nonce = http_exchange_header(x, "DPoP-Nonce");

	struct err e;

	r->status = status;
	if (http_exchange_headers(x, "WWW-Authenticate", &challenge, &e) < 0)
		buf_fini(&challenge);
	snprintf(r->challenge, sizeof(r->challenge), "%.*s", STR_ARG(buf_str(&challenge)));
	snprintf(r->nonce, sizeof(r->nonce), "%.*s", STR_ARG(nonce));
}

static void on_bytes(void *owner, struct http_exchange *x, struct str bytes)
{
}

static void on_end(void *owner, struct http_exchange *x, const struct err *e)
{
	struct request *r = owner;
	struct mcp_auth *a = mcp_oauth_auth(oauth);

	r->x = NULL;
	if (!e && (r->status == 401 || r->status == 403)) {
		r->ask.tries++;
		r->refused = true;
		a->ops->refused(a, &r->ask, r->status, str_of(r->challenge), str_of(r->nonce));
		return;
	}
	if (!e)
		a->ops->answered(a, str_of(r->nonce));
	request_over(r, e);
}

static const struct http_exchange_events events = { on_head, on_bytes, on_end };

static void on_headers(void *owner, const struct http_header *headers, size_t n,
		       const struct err *why)
{
	struct request *r = owner;
	struct err e = why ? *why : ERR_INIT;
	struct http_spec spec = { .method = setup.method,
				  .url = setup.url,
				  .headers = headers,
				  .n_headers = n,
				  .body = STR_LIT("{}") };

	if (why) {
		request_over(r, &e);
		return;
	}
	if (r->refused) {
		send_again(r);
		return;
	}
	r->x = http_exchange_start(web, &spec, &events, r, &e);
	if (!r->x)
		request_over(r, &e);
}

static void send_again(struct request *r)
{
	struct mcp_auth *a = mcp_oauth_auth(oauth);

	r->refused = false;
	r->ask.done = on_headers;
	r->ask.owner = r;
	a->ops->headers(a, &r->ask, setup.method, setup.url);
}

/* --- the person --- */

static void answer(void)
{
	struct err e;

	if (mcp_oauth_redirected(oauth, location, &e) < 0)
		printf("not taken: %s\n", e.msg);
	fflush(stdout);
}

static void browser_head(void *owner, struct http_exchange *x, int status)
{
	struct str to = http_exchange_header(x, "Location");

	snprintf(location, sizeof(location), "%.*s", STR_ARG(to));
}

static void browse_to(const char *url);

static void browser_end(void *owner, struct http_exchange *x, const struct err *e)
{
	if (e || !location[0])
		return;
	if (!setup.oauth.redirect) {
		browse_to(location); /* the listener answers without a Location */
		return;
	}
	answer();
	if (setup.replay)
		answer();
}

static const struct http_exchange_events browser = { browser_head, on_bytes, browser_end };

static void browse_to(const char *url)
{
	struct http_spec spec = { .method = "GET", .url = url };
	struct err e;

	if (!http_exchange_start(web, &spec, &browser, NULL, &e))
		printf("browser: %s\n", e.msg);
}

static void on_browse(void *owner, const char *url)
{
	struct err e;

	printf("browse %s\n", url);
	fflush(stdout);
	if (setup.forge) {
		snprintf(location, sizeof(location),
			 "http://127.0.0.1/callback?code=stolen&state=%s", "0123456789abcdef");
		answer();
	}
	if (setup.forget_amid && mcp_oauth_forget(oauth, on_forgotten, NULL, &e) < 0)
		printf("not forgotten: %s\n", e.msg);
	else if (setup.give_up)
		mcp_oauth_give_up(oauth);
	else if (!setup.off && !setup.forget_amid)
		browse_to(url);
}

static void on_device(void *owner, const char *url, const char *code, const char *complete,
		      unsigned expires_s)
{
	printf("device %s %s %u\n", url, code, expires_s);
	fflush(stdout);
}

static void on_want(void *owner, const char *issuer)
{
	struct mcp_oauth_client c = { .id = setup.say,
				      .private_key = setup.say_key,
				      .method = setup.say_method };
	struct err e;

	printf("want %s\n", issuer);
	if (mcp_oauth_client_given(oauth, &c, &e) < 0) {
		printf("not taken: %s\n", e.msg);
		mcp_oauth_give_up(oauth);
	}
}

static void on_settled(void *owner, const struct err *e)
{
	printf("settled %s\n", e ? err_info(e->code)->name : "ok");
	fflush(stdout);
}

static const char *on_assertion(void *owner, const char *audience)
{
	const char *leave = setup.leave ? setup.leave : "";
	struct err e;

	if (strcmp(leave, "give_up") == 0)
		mcp_oauth_give_up(oauth);
	else if (strcmp(leave, "forget") == 0 &&
		 mcp_oauth_forget(oauth, on_forgotten, NULL, &e) < 0)
		printf("not forgotten: %s\n", e.msg);
	else if (strcmp(leave, "close") == 0)
		close_all();
	return setup.word;
}

static struct mcp_oauth_handler handler = {
	.browse = on_browse, .device = on_device, .settled = on_settled, .assertion = on_assertion
};

/* --- arguments --- */

static const char *const grants[] = { "code", "device", "client_credentials", "enterprise",
				      "workload" };
static const char *const dpops[] = { "auto", "never", "always" };

static unsigned index_of(const char *const *names, size_t n, const char *value)
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(names[i], value) == 0)
			return i;
	}
	exit(2);
}

static const struct {
	const char *name;
	const char **text;
	unsigned *number;
	bool *flag;
} options[] = {
	{ .name = "server", .text = &setup.oauth.server },
	{ .name = "url", .text = &setup.url },
	{ .name = "method", .text = &setup.method },
	{ .name = "client_id", .text = &setup.oauth.client.id },
	{ .name = "client_secret", .text = &setup.oauth.client.secret },
	{ .name = "private_key", .text = &setup.oauth.client.private_key },
	{ .name = "algorithm", .text = &setup.oauth.client.algorithm },
	{ .name = "auth_method", .text = &setup.oauth.client.method },
	{ .name = "client_issuer", .text = &setup.oauth.client.issuer },
	{ .name = "client_id_url", .text = &setup.oauth.client_id_url },
	{ .name = "redirect", .text = &setup.oauth.redirect },
	{ .name = "scope", .text = &setup.oauth.scope },
	{ .name = "issuer", .text = &setup.oauth.issuer },
	{ .name = "idp", .text = &setup.oauth.enterprise.token_endpoint },
	{ .name = "idp_client", .text = &setup.oauth.enterprise.client.id },
	{ .name = "idp_secret", .text = &setup.oauth.enterprise.client.secret },
	{ .name = "say", .text = &setup.say },
	{ .name = "say_key", .text = &setup.say_key },
	{ .name = "say_method", .text = &setup.say_method },
	{ .name = "word", .text = &setup.word },
	{ .name = "leave", .text = &setup.leave },
	{ .name = "requests", .number = &setup.requests },
	{ .name = "at_once", .number = &setup.at_once },
	{ .name = "step_ms", .number = &setup.oauth.step_ms },
	{ .name = "person_ms", .number = &setup.oauth.person_ms },
	{ .name = "online", .flag = &setup.oauth.online },
	{ .name = "private_ok", .flag = &setup.oauth.private_ok },
	{ .name = "off", .flag = &setup.off },
	{ .name = "forge", .flag = &setup.forge },
	{ .name = "replay", .flag = &setup.replay },
	{ .name = "give_up", .flag = &setup.give_up },
	{ .name = "forget", .flag = &setup.forget },
	{ .name = "forget_amid", .flag = &setup.forget_amid },
	{ .name = "linger", .flag = &setup.linger },
};

static void set(const char *name, const char *value)
{
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (strcmp(options[i].name, name) != 0)
			continue;
		if (options[i].text)
			*options[i].text = value;
		if (options[i].number)
			*options[i].number = (unsigned)strtoul(value, NULL, 10);
		if (options[i].flag)
			*options[i].flag = true;
		return;
	}
	if (strcmp(name, "grant") == 0) {
		setup.oauth.grant = index_of(grants, ARRAY_LEN(grants), value);
	} else if (strcmp(name, "dpop") == 0) {
		setup.oauth.dpop = index_of(dpops, ARRAY_LEN(dpops), value);
	} else if (strcmp(name, "store") == 0) {
		store = mcp_oauth_store_open(value, &e);
		if (!store) {
			printf("error %s %s\n", err_info(e.code)->name, e.msg);
			exit(0);
		}
	} else {
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct err e;

	log_init("mcp-oauth-host");
	for (int i = 1; i < argc; i++) {
		char *eq = strchr(argv[i], '=');

		if (!eq)
			return 2;
		*eq = '\0';
		set(argv[i], eq + 1);
	}
	uv_loop_init(&loop);
	setup.url = setup.url ? setup.url : setup.oauth.server;
	handler.want_client = setup.say ? on_want : NULL;
	setup.oauth.handler = &handler;
	setup.oauth.store = store;
	web = http_client_new(&loop, &(struct http_client_options){ .connect_ms = 5000 }, &e);
	oauth = web ? mcp_oauth_new(&loop, &setup.oauth, &e) : NULL;
	if (!oauth) {
		printf("error %s %s\n", err_info(e.code)->name, e.msg);
		return 0;
	}
	next();
	uv_run(&loop, UV_RUN_DEFAULT);
	mcp_oauth_store_free(store);
	explicit_bzero(location, sizeof(location)); /* of the browser */
	if (setup.linger) {
		puts("gone");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	return uv_loop_close(&loop) < 0;
}
