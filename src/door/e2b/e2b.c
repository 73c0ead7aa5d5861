/* Routes, and who asks: principals by their tokens, holders of a sandbox's token, and those of
 * signed addresses. */
#include "door/e2b/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "door/expose/expose.h"
#include "door/http/error.h"
#include "http/message/head.h"
#include "hub/core/hub.h"

enum {
	KEY_BYTES_MAX = 256,
	LIST_STEP = 256,
	BODY_MAX = 1 << 20,
	/* Sandboxes that are looked at for signed addresses: each costs some microseconds. */
	LOOKS_A_MS = 8, /* for one client */
	LOOKS_AT_ONCE = 16384,
	LOOKS_OF_ALL = 4, /* times as many for all of them */
};

static const struct e2b_rows *const files[] = { &e2b_sandboxes, &e2b_process, &e2b_filesystem,
						&e2b_watch,	&e2b_files,   &e2b_code };

/* Asks for what is no sandbox: the row says so, in its own form. */
const struct principal e2b_gone = { .name = "nobody" };
const struct principal e2b_later = { .name = "nobody" };

/* ---- tokens -------------------------------------------------------------------------------- */

void e2b_token(const struct e2b *x, struct str id, uint32_t generation, bool of_ports,
	       char ret[E2B_TOKEN])
{
	char text[SANDBOX_ID_MAX + 160], inner[SHA256_HEX];
	int n = snprintf(text, sizeof(text), "%s %s %.*s %u", x->secret, of_ports ? "port" : "envd",
			 STR_CUT(id, SANDBOX_ID_MAX), generation);

	sha256_hex((struct str){ text, (size_t)n }, inner);
	n = snprintf(text, sizeof(text), "%s %s", x->secret, inner);
	sha256_hex((struct str){ text, (size_t)n }, ret);
	explicit_bzero(text, sizeof(text));
}

/* In a time that does not tell where they differ. */
static bool same_token(struct str a, const char *b)
{
	size_t n = strlen(b);
	unsigned char differs = 0;

	if (a.n != n)
		return false;
	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(a.p[i] ^ b[i]);
	return differs == 0;
}

/* The query of a signed address, decoded once: each look-up takes memory of the request. */
struct signature {
	struct str until;
	struct sha256 begun; /* of what is signed, up to the token */
	unsigned char sum[SHA256_BYTES];
};

/* "v1_" and base64 of a hash without its last sign. */
static bool read_sum(struct str text, unsigned char ret[SHA256_BYTES])
{
	enum { FRONT = 3, SIGNS = 43 };
	char whole[SIGNS + 1];
	autobuf struct buf b = BUF_INIT(sizeof(whole));
	struct err e;

	if (text.n != FRONT + SIGNS || !str_starts(text, "v1_"))
		return false;
	memcpy(whole, text.p + FRONT, SIGNS);
	whole[SIGNS] = '=';
	if (base64_decode(&b, (struct str){ whole, sizeof(whole) }, &e) < 0 || b.n != SHA256_BYTES)
		return false;
	memcpy(ret, b.p, SHA256_BYTES);
	return true;
}

/* "path:op:user:token[:expiration]" is signed. False: there is no signature, it can't be right, or
 * its time is over. */
static bool read_signature(struct http_request *q, struct signature *ret)
{
	struct signature s;
	struct str path, user;
	unsigned long long seconds;

	if (!read_sum(http_request_query(q, STR_LIT("signature")), s.sum))
		return false;
	s.until = http_request_query(q, STR_LIT("signature_expiration"));
	if (s.until.p && (!http_length_parse(s.until, &seconds) ||
			  seconds < (unsigned long long)(clock_unix_ms() / 1000)))
		return false;
	path = http_request_query(q, STR_LIT("path"));
	user = http_request_query(q, STR_LIT("username"));
	if (path.n > E2B_PATH_MAX || (user.n && !str_is(user, "user") && !str_is(user, "root")))
		return false;
	sha256_begin(&s.begun);
	sha256_add(&s.begun, path);
	sha256_add(&s.begun,
		   http_request_method(q) == HTTP_GET ? STR_LIT(":read:") : STR_LIT(":write:"));
	sha256_add(&s.begun, user);
	sha256_add(&s.begun, STR_LIT(":"));
	*ret = s;
	return true;
}

static bool is_signed(const struct e2b *x, struct hub_sandbox *l, const struct signature *s)
{
	struct sha256 h = s->begun;
	unsigned char sum[SHA256_BYTES], differs = 0;
	char token[E2B_TOKEN];
	struct hub_sandbox_info i;

	hub_sandbox_info(l, &i);
	e2b_token(x, i.id, i.generation, false, token);
	sha256_add(&h, str_of(token));
	if (s->until.p) {
		sha256_add(&h, STR_LIT(":"));
		sha256_add(&h, s->until);
	}
	sha256_end(&h, sum);
	for (size_t k = 0; k < sizeof(sum); k++)
		differs |= sum[k] ^ s->sum[k];
	return differs == 0;
}

/* ---- sandboxes ----------------------------------------------------------------------------- */

struct hub_sandbox *e2b_find(const struct e2b *x, struct str id)
{
	struct hub_sandbox *l;
	struct hub_sandbox_info i;
	struct err e;

	if (!id.p || id.n > SANDBOX_ID_MAX)
		return NULL;
	l = hub_sandboxes_find(hub_sandboxes(ops_hub(x->o.ops)), id, &e);
	if (!l)
		return NULL;
	hub_sandbox_info(l, &i);
	return i.state == SANDBOX_TERMINATED || i.state == SANDBOX_FAILED ? NULL : l;
}

bool e2b_label(struct hub_sandbox *l, const char *name, struct str *ret_value)
{
	size_t n = strlen(name);
	struct hub_sandbox_info i;
	struct str left;

	hub_sandbox_info(l, &i);
	left = i.labels;
	while (left.n) {
		const char *end = memchr(left.p, '\n', left.n);
		struct str line = { left.p, end ? (size_t)(end - left.p) : left.n };

		left = (struct str){ line.p + line.n, left.n - line.n };
		if (left.n)
			left = (struct str){ left.p + 1, left.n - 1 };
		if (line.n > n && memcmp(line.p, name, n) == 0 && line.p[n] == '=') {
			*ret_value = (struct str){ line.p + n + 1, line.n - n - 1 };
			return true;
		}
	}
	return false;
}

struct str e2b_template(const struct e2b *x, struct str name)
{
	const struct field_map *m = &config_file(x->o.config)->compat.templates;

	for (size_t i = 0; i < m->n; i++) {
		if (str_eq(m->p[i].key, name))
			return m->p[i].value;
	}
	return str_is(name, "base") || str_is(name, "code-interpreter-v1") ? STR_LIT("host") : name;
}

static bool can_be_signed(struct hub_sandbox *l)
{
	struct hub_sandbox_info i;
	struct str ignored;

	hub_sandbox_info(l, &i);
	return i.state != SANDBOX_TERMINATED && i.state != SANDBOX_FAILED &&
	       e2b_label(l, E2B_LABEL_TEMPLATE, &ignored);
}

/* Where the id that was found for this signature is kept, as a hint. */
static char *hint_of(struct e2b *x, const struct signature *s)
{
	return x->signed_by[s->sum[0] % E2B_SIGNED];
}

static struct hub_sandbox *find_hinted(struct e2b *x, const struct signature *s)
{
	const char *hint = hint_of(x, s);
	struct hub_sandbox *l = *hint ? e2b_find(x, str_of(hint)) : NULL;

	return l && can_be_signed(l) && is_signed(x, l, s) ? l : NULL;
}

/* By the address, without the port. */
static struct e2b_looks *looks_of(struct e2b *x, struct http_request *q)
{
	struct str peer = http_request_peer(q);
	const char *end = peer.n ? memrchr(peer.p, ':', peer.n) : NULL;
	unsigned sum = 0;

	for (const char *p = peer.p; p < (end ? end : peer.p + peer.n); p++)
		sum = sum * 31 + (unsigned char)*p;
	return &x->looks_of[sum % E2B_SIGNED];
}

static bool has_looks(struct e2b_looks *k, unsigned times)
{
	uint64_t now = clock_ms(), paid = (now - k->at_ms) * LOOKS_A_MS * times;

	k->n -= paid < k->n ? paid : k->n;
	k->at_ms = now;
	return k->n < (uint64_t)LOOKS_AT_ONCE * times;
}

/* It names no sandbox, and the token that it is signed by is in a hash: each has to be tried. Who
 * asks shows nothing before, so what that costs is bounded by time, not by how many there are. */
static struct hub_sandbox *find_signed(struct e2b *x, struct http_request *q,
				       const struct signature *s)
{
	struct hub_sandboxes *all = hub_sandboxes(ops_hub(x->o.ops));
	struct hub_sandbox *step[LIST_STEP], *found = find_hinted(x, s);
	struct hub_sandbox_info i = { .seq = 0 };
	size_t got = LIST_STEP, n = 0;

	while (!found && got == LIST_STEP) {
		got = hub_sandboxes_list(all, i.seq, step, LIST_STEP);
		for (size_t k = 0; k < got && !found; k++) {
			hub_sandbox_info(step[k], &i);
			if (!can_be_signed(step[k]))
				continue;
			n++;
			if (is_signed(x, step[k], s))
				found = step[k];
		}
	}
	if (n && found)
		snprintf(hint_of(x, s), sizeof(x->signed_by[0]), "%.*s", STR_ARG(i.id));
	looks_of(x, q)->n += n;
	x->looks.n += n;
	return found;
}

static bool may_search(struct e2b *x, struct http_request *q, const struct signature *s)
{
	/* Both are told the time. */
	bool own = has_looks(looks_of(x, q), 1), all = has_looks(&x->looks, LOOKS_OF_ALL);

	return (own && all) || find_hinted(x, s);
}

struct str e2b_signed(struct e2b *x, struct http_request *q)
{
	struct signature s;
	struct hub_sandbox *l = read_signature(q, &s) ? find_signed(x, q, &s) : NULL;
	struct hub_sandbox_info i;

	if (!l)
		return STR_NONE;
	hub_sandbox_info(l, &i);
	return i.id;
}

/* ---- who asks ------------------------------------------------------------------------------ */

static const struct e2b_row *row_of(const struct e2b *x, const struct http_request *q)
{
	return x->of[http_request_route(q) - x->rows];
}

/* Older clients want a key to be "e2b_" and hex digits: those of a key's or of the hub's token. */
static const void *identify_key(const struct e2b *x, struct http_request *q)
{
	struct str key = http_request_header(q, STR_LIT("X-API-KEY"));
	static const char *const fronts[] = { "holt_", "holt_key_" };
	char text[KEY_BYTES_MAX + 16];
	const void *who;

	if (!key.n || key.n > KEY_BYTES_MAX ||
	    http_request_header_count(q, STR_LIT("X-API-KEY")) > 1)
		return NULL;
	who = x->o.identify(x->o.owner, key, false);
	if (who || !str_starts(key, "e2b_"))
		return who;
	for (size_t i = 0; i < ARRAY_LEN(fronts) && !who; i++) {
		int n = snprintf(text, sizeof(text), "%s%.*s", fronts[i], (int)key.n - 4,
				 key.p + 4);

		who = x->o.identify(x->o.owner, (struct str){ text, (size_t)n }, false);
	}
	explicit_bzero(text, sizeof(text));
	return who;
}

static const void *identify_of_mitos(const struct e2b *x, struct http_request *q)
{
	struct str header = http_request_header(q, STR_LIT("Authorization"));
	struct str token = http_bearer(header);

	if (!header.p)
		return x->o.of_mitos(x->o.owner, q);
	if (!token.p || http_request_header_count(q, STR_LIT("Authorization")) > 1)
		return NULL;
	return x->o.identify(x->o.owner, token, false);
}

static bool has_token(const struct e2b *x, struct hub_sandbox *l, bool of_code,
		      struct http_request *q)
{
	struct str access = http_request_header(q, STR_LIT("X-Access-Token"));
	struct str traffic = http_request_header(q, STR_LIT("E2B-Traffic-Access-Token"));
	char token[E2B_TOKEN];
	struct hub_sandbox_info i;

	hub_sandbox_info(l, &i);
	e2b_token(x, i.id, i.generation, false, token);
	if (access.p && same_token(access, token))
		return true;
	e2b_token(x, i.id, i.generation, true, token);
	return of_code && traffic.p && same_token(traffic, token);
}

/* A sandbox acts on behalf of its owner, whoever asks by its token. */
static const void *owner_of(const struct e2b *x, struct hub_sandbox *l)
{
	struct hub_sandbox_info i;

	hub_sandbox_info(l, &i);
	return ops_owner(x->o.ops, i.owner);
}

/* For what fails. A body that might be large is not taken in for it: without a token no route
 * awaits more than 1 MiB. */
static const void *nobody(const struct principal *as, const struct e2b_row *row,
			  struct http_request *q)
{
	struct str length = http_request_header(q, STR_LIT("Content-Length"));
	unsigned long long n = 0;

	if (row->body_max > BODY_MAX && (!http_length_parse(length, &n) || n > BODY_MAX))
		return NULL;
	return as;
}

static const void *identify(void *owner, struct http_request *q)
{
	struct e2b *x = owner;
	const struct e2b_row *row = row_of(x, q);
	struct str id = http_request_header(q, STR_LIT("E2b-Sandbox-Id"));
	struct signature s;
	bool by_address = row->form == E2B_HTTP && read_signature(q, &s);
	struct hub_sandbox *l;
	struct str ignored;

	if (row->form == E2B_CONTROL)
		return identify_key(x, q);
	if (row->form == E2B_MITOS)
		return identify_of_mitos(x, q);
	if (!id.p && by_address && !may_search(x, q, &s))
		return nobody(&e2b_later, row, q);
	if (!id.p)
		l = by_address ? find_signed(x, q, &s) : NULL;
	else
		l = e2b_find(x, id);
	if (!l)
		return id.p ? nobody(&e2b_gone, row, q) : NULL;
	if (!id.p || has_token(x, l, row->form == E2B_CODE, q) ||
	    (by_address && is_signed(x, l, &s)))
		return owner_of(x, l);
	/* Other sandboxes are not even told to be there. */
	return e2b_label(l, E2B_LABEL_TEMPLATE, &ignored) ? NULL : nobody(&e2b_gone, row, q);
}

bool e2b_user(struct http_request *q, bool *ret_root)
{
	struct str basic = http_request_header(q, STR_LIT("Authorization"));
	struct str name = http_request_query(q, STR_LIT("username"));
	autobuf struct buf b = BUF_INIT(256);
	const char *colon;
	struct err e;

	if (!name.p && str_starts(basic, "Basic ")) {
		if (base64_decode(&b, (struct str){ basic.p + 6, basic.n - 6 }, &e) < 0)
			return false;
		colon = b.n ? memchr(b.p, ':', b.n) : NULL;
		name = (struct str){ b.p, colon ? (size_t)(colon - b.p) : b.n };
	}
	*ret_root = str_is(name, "root");
	return *ret_root || name.n == 0 || str_is(name, "user");
}

/* ---- ports --------------------------------------------------------------------------------- */

struct port_target {
	struct str id;
	uint16_t port;
	bool by_header;
};

static bool read_port(struct str text, uint16_t *ret)
{
	unsigned long long n;

	if (text.n == 0 || text.n > 5 || !http_length_parse(text, &n) || n < 1 || n > 65535)
		return false;
	*ret = (uint16_t)n;
	return true;
}

/* The host name PORT-ID.DOMAIN, which the door has let pass; or the headers of the SDKs. */
static bool read_target(struct http_request *q, struct port_target *ret)
{
	struct str host = http_request_header(q, STR_LIT("Host"));
	const char *dot = host.n ? memchr(host.p, '.', host.n) : NULL;
	const char *dash = dot ? memchr(host.p, '-', (size_t)(dot - host.p)) : NULL;

	if (dash && read_port((struct str){ host.p, (size_t)(dash - host.p) }, &ret->port)) {
		ret->id = (struct str){ dash + 1, (size_t)(dot - dash - 1) };
		ret->by_header = false;
		if (str_starts(ret->id, "sbx-"))
			return true;
	}
	ret->id = http_request_header(q, STR_LIT("E2b-Sandbox-Id"));
	ret->by_header = true;
	return ret->id.p &&
	       read_port(http_request_header(q, STR_LIT("E2b-Sandbox-Port")), &ret->port) &&
	       ret->port != E2B_ENVD_PORT && ret->port != E2B_CODE_PORT;
}

static bool claims(void *owner, struct http_request *q)
{
	struct port_target t;

	/* The page has a view of this name, too. */
	return read_target(q, &t) ||
	       (http_request_method(q) == HTTP_GET && str_is(http_request_path(q), "/health") &&
		http_request_header(q, STR_LIT("E2b-Sandbox-Id")).p);
}

/* Whether it runs, for a client that has its token and so may know of it: no call. */
static void run_health(struct e2b *x, struct http_request *q)
{
	struct hub_sandbox *l = e2b_find(x, http_request_header(q, STR_LIT("E2b-Sandbox-Id")));
	bool knows = l && has_token(x, l, true, q) && owner_of(x, l);
	struct hub_sandbox_info i = { .state = SANDBOX_LOST };
	struct str ignored;
	struct err e;

	if (knows)
		hub_sandbox_info(l, &i);
	if (l && !knows && e2b_label(l, E2B_LABEL_TEMPLATE, &ignored))
		err_set(&e, ERR_UNAUTHORIZED, "the sandbox's token is missing or wrong");
	else
		err_set(&e, ERR_PORT, "the sandbox does not run");
	if (i.state == SANDBOX_RUNNING)
		http_reply(q, &(struct http_reply){ .status = 204 });
	else
		http_reply_error(q, &e);
}

/* Anybody sees what a sandbox shows that was made here, unless its maker said otherwise. Its name
 * can't be guessed. */
static int find_port(const struct e2b *x, struct http_request *q, struct preview_right *ret,
		     struct err *e)
{
	struct port_target t = { .port = 0 };
	bool ok = read_target(q, &t);
	struct hub_sandbox *l = ok ? e2b_find(x, t.id) : NULL;
	char token[E2B_TOKEN];
	struct hub_sandbox_info i;
	struct str ignored;

	if (!l || !e2b_label(l, E2B_LABEL_TEMPLATE, &ignored))
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "the sandbox was not found");
	hub_sandbox_info(l, &i);
	e2b_token(x, i.id, i.generation, true, token);
	if (e2b_label(l, E2B_LABEL_PRIVATE, &ignored) &&
	    !same_token(http_request_header(q, STR_LIT("E2B-Traffic-Access-Token")), token))
		return err_set(e, ERR_UNAUTHORIZED,
			       "the ports of this sandbox want E2B-Traffic-Access-Token");
	*ret = (struct preview_right){ .port = t.port, .generation = i.generation };
	snprintf(ret->id, sizeof(ret->id), "%.*s", STR_ARG(i.id));
	snprintf(ret->owner, sizeof(ret->owner), "%.*s", STR_CUT(i.owner, OWNER_MAX));
	return 0;
}

static void run_port(void *owner, struct http_request *q)
{
	struct e2b *x = owner;
	struct preview_right right;
	struct port_target t;
	struct err e;

	if (!read_target(q, &t)) {
		run_health(x, q);
		return;
	}
	expose_public(x->o.expose, q, find_port(x, q, &right, &e) == 0 ? &right : NULL, t.by_header,
		      &e);
}

/* ---- routes -------------------------------------------------------------------------------- */

static void e2b_run(void *owner, struct http_request *q)
{
	ask_run(owner, row_of(owner, q), q);
}

int e2b_explain(const struct http_problem *problem, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);
	bool connect = str_starts(problem->path, "/process.") ||
		       str_starts(problem->path, "/filesystem.") ||
		       str_starts(problem->path, "/sandbox.v1.");

	json_write_object(&w);
	json_write_key(&w, "code");
	if (connect)
		json_write_text(&w, problem->status == 401 ? "unauthenticated"
				    : problem->status == 502
					    ? "unavailable"
					    : api_codes[api_code_of(problem->e->code)].connect);
	else
		json_write_int(&w, problem->status);
	json_put_text(&w, "message", problem->e->msg);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void e2b_add(struct e2b *x, const struct e2b_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct e2b_row *r = &rows->p[i];

		x->rows[x->n] = (struct http_route){ .path = r->path,
						     .methods = r->method,
						     .any_type = true,
						     .body_max = r->body_max ? r->body_max
									     : BODY_MAX,
						     .run = e2b_run,
						     .doc = r->doc };
		x->of[x->n++] = r;
	}
}

static int e2b_fill(struct e2b *x, struct err *e)
{
	size_t n = 1 + e2b_mitos.n;

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		n += files[i]->n;
	x->rows = calloc(n, sizeof(*x->rows));
	x->of = calloc(n, sizeof(*x->of));
	if (!x->rows || !x->of)
		return err_set(e, ERR_LIMIT, "out of memory");
	x->rows[x->n++] = (struct http_route){
		.path = "(ports)", /* none that is asked for: claims() alone finds it */
		.methods = 0,
		.open = true,
		.any_type = true,
		.streams = true,
		.run = run_port,
		.doc = "The answer of a server in a sandbox.",
	};
	if (x->o.of_mitos)
		e2b_add(x, &e2b_mitos);
	for (size_t i = 0; !x->o.mitos_only && i < ARRAY_LEN(files); i++)
		e2b_add(x, files[i]);
	return 0;
}

AUTO_DEFINE(e2b_free, struct e2b)

struct e2b *e2b_new(const struct e2b_options *o, struct err *e)
{
	AUTO(e2b_free) struct e2b *x = calloc(1, sizeof(*x));

	if (!x)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	x->o = *o;
	config_ref(o->config);
	snprintf(x->secret, sizeof(x->secret), "%.*s", STR_ARG(o->secret));
	return e2b_fill(x, e) < 0 ? NULL : take_ptr(x);
}

void e2b_configure(struct e2b *x, struct config *c)
{
	config_ref(c);
	config_unref(x->o.config);
	x->o.config = c;
}

/* Asks that work may finish; those that wait for news end. One that ends may end others. */
void e2b_drain(struct e2b *x)
{
	struct ask *a;

	e2b_watchers_free(x);
	do {
		for (a = x->asks; a; a = a->next) {
			if ((!a->left || a->lingers) && (!a->row || a->row->form >= E2B_STREAM))
				break;
		}
		if (a)
			ask_cancel(a);
	} while (a);
}

void e2b_close(struct e2b *x, void (*on_closed)(void *arg), void *arg)
{
	e2b_drain(x);
	x->on_closed = on_closed;
	x->on_closed_arg = arg;
	e2b_settle(x);
}

void e2b_settle(struct e2b *x)
{
	void (*on_closed)(void *arg) = x->on_closed;
	void *arg = x->on_closed_arg;

	if (!on_closed || x->asks)
		return;
	e2b_free(x);
	on_closed(arg);
}

void e2b_free(struct e2b *x)
{
	if (!x)
		return;
	e2b_watchers_free(x);
	e2b_contexts_free(x);
	e2b_processes_free(x);
	config_unref(x->o.config);
	explicit_bzero(x->secret, sizeof(x->secret));
	free(x->rows);
	free(x->of);
	free(x);
}

struct http_routes e2b_routes(const struct e2b *x)
{
	return (struct http_routes){ .p = x->rows,
				     .n = x->n,
				     .owner = (void *)x,
				     .explain = e2b_explain,
				     .identify = identify,
				     .claims = x->o.mitos_only ? NULL : claims };
}
