#include "login.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

enum { BROWSER_SECONDS = 10 };

struct login {
	struct mcp_oauth *oauth;
	const struct mcp_json_val *context;
	char *word; /* what assertion() gave last */
};

/* --- the browser --- */

static size_t ignore(char *p, size_t size, size_t n, void *data)
{
	return size * n;
}

/* Where a page sends us to, not followed; the caller's to free with curl_free(). */
static char *ask_location(const char *url)
{
	CURL *easy = curl_easy_init();
	char *location = NULL, *copy = NULL;

	if (!easy)
		return NULL;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)BROWSER_SECONDS);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
	if (curl_easy_perform(easy) == CURLE_OK &&
	    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &location) == CURLE_OK && location)
		copy = strdup(location);
	curl_easy_cleanup(easy);
	return copy;
}

/* The suite's server says yes at once, so nothing waits here for long. */
static void on_browse(void *owner, const char *url)
{
	struct login *l = owner;
	mcp_autofree char *location = ask_location(url);
	struct mcp_err e;

	printf("login at %s\n", url);
	if (!location)
		mcp_oauth_give_up(l->oauth);
	else if (mcp_oauth_redirected(l->oauth, location, &e) < 0)
		fprintf(stderr, "client: %s\n", e.msg);
}

static void on_settled(void *owner, const struct mcp_err *e)
{
	printf("login %s\n", e ? "failed" : "done");
}

/* --- what the suite says --- */

/* The caller's to free; NULL where it says nothing of it. */
static char *told(const struct mcp_json_val *context, const char *name)
{
	struct mcp_str s = mcp_json_str(mcp_json_get(context, name));

	return s.p ? strndup(s.p, s.n) : NULL;
}

static const char *on_assertion(void *owner, const char *audience)
{
	struct login *l = owner;

	free(l->word);
	l->word = told(l->context, "valid_jwt");
	if (!l->word)
		l->word = told(l->context, "idp_id_token");
	return l->word;
}

static const struct mcp_oauth_handler handler = { .browse = on_browse,
						  .settled = on_settled,
						  .assertion = on_assertion };

static enum mcp_oauth_grant grant_of(const struct client *c)
{
	const struct mcp_json_val *context = mcp_json_root(c->context);

	if (mcp_json_get(context, "valid_jwt"))
		return MCP_OAUTH_WORKLOAD;
	if (mcp_json_get(context, "idp_id_token"))
		return MCP_OAUTH_ENTERPRISE;
	return strstr(c->scenario, "client-credentials") ? MCP_OAUTH_CLIENT_CREDENTIALS
							 : MCP_OAUTH_CODE;
}

static struct mcp_oauth *open_oauth(struct client *c, struct login *l, const char *url,
				    struct mcp_err *e)
{
	mcp_autofree char *id = told(l->context, "client_id"),
			  *secret = told(l->context, "client_secret");
	mcp_autofree char *key = told(l->context, "private_key_pem");
	mcp_autofree char *algorithm = told(l->context, "signing_algorithm");
	mcp_autofree char *issuer = told(l->context, "issuer");
	mcp_autofree char *idp = told(l->context, "idp_token_endpoint");
	mcp_autofree char *idp_id = told(l->context, "idp_client_id");
	const struct mcp_oauth_options o = {
		.server = url,
		.grant = grant_of(c),
		.client = { .id = id,
			    .secret = secret,
			    .private_key = key,
			    .algorithm = algorithm,
			    .issuer = issuer },
		.client_id_url = "https://conformance-test.local/client-metadata.json",
		.client_name = "client",
		.redirect = "http://localhost:3000/callback",
		.enterprise = { .token_endpoint = idp, .client = { .id = idp_id } },
		.handler = &handler,
		.owner = l,
	};

	return mcp_oauth_new(&c->loop, &o, e);
}

/* --- life --- */

struct login *login_new(struct client *c, const char *url, struct mcp_err *e)
{
	struct login *l = calloc(1, sizeof(*l));

	if (!l) {
		mcp_err_set(e, MCP_ERR_LIMIT, "out of memory");
		return NULL;
	}
	l->context = c->context ? mcp_json_root(c->context) : NULL;
	l->oauth = open_oauth(c, l, url, e);
	if (!l->oauth) {
		free(l);
		return NULL;
	}
	return l;
}

struct mcp_auth *login_auth(struct login *l)
{
	return mcp_oauth_auth(l->oauth);
}

static void on_closed(void *owner)
{
	struct login *l = owner;

	free(l->word);
	free(l);
}

void login_close(struct login *l)
{
	if (l)
		mcp_oauth_close(l->oauth, on_closed, l);
}
