/*
 * Log-ins of browsers. A log-in has a principal of its own, so that what goes on for it ends with
 * it, and for nobody else. Secrets have 256 random bits, so guesses need no other limit.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/when.h"
#include "door/page/internal.h"
#include "guard/key/key.h"
#include "http/message/head.h"
#include "json/field/field.h"

enum {
	LINK_MS = 10 * 60 * 1000,
	IDLE_MS = 12 * 3600 * 1000,
	SAVE_MS = 10 * 60 * 1000, /* when they were used last is kept no more exactly */
	COOKIE_NAME_MAX = 64,
	BODY_ARENA = 16 << 10,
	ANSWER_MAX = 64 << 10,
};
#define LIFE_MS (7ll * 86400 * 1000)

#define KEY_HEADER "Holt-Page"
/* A WebSocket can't have headers of a page's choice, but it names protocols. */
#define KEY_PROTOCOL "holt.page."

/* ---- answers ------------------------------------------------------------------------------- */

static void login_answer(struct http_request *q, const struct field_table *t, const void *from,
			 struct str cookie)
{
	const struct http_header headers[] = { { "Cache-Control", STR_LIT("no-store") },
					       { "Set-Cookie", cookie } };
	struct err e = ERR_INIT;
	char *text = field_encode_text(t, from, ANSWER_MAX, &e);

	if (!text)
		http_reply_error(q, &e);
	else
		http_reply(q, &(struct http_reply){ .status = 200,
						    .type = "application/json",
						    .body = str_of(text),
						    .owned = text,
						    .headers = headers,
						    .n_headers = cookie.n ? 2 : 1 });
}

struct login_view {
	struct str id, name;
	struct field_strs scopes;
	bool current;
	struct str began_at, used_at, expires_at;
};
#define V struct login_view
static const struct field login_fields[] = {
	FIELD(V, id, .flags = FIELD_REQUIRED, .doc = "Id of the log-in."),
	FIELD(V, name, .flags = FIELD_REQUIRED, .doc = "Principal whose rights it has."),
	FIELD(V, scopes, .flags = FIELD_REQUIRED, .doc = "Scopes of its rights."),
	FIELD(V, current, .flags = FIELD_REQUIRED,
	      .doc = "Whether it is the log-in that sent this request."),
	FIELD(V, began_at, .flags = FIELD_REQUIRED, .doc = "Time of the log-in, RFC 3339."),
	FIELD(V, used_at, .flags = FIELD_REQUIRED, .doc = "Time of the last use, RFC 3339."),
	FIELD(V, expires_at, .flags = FIELD_REQUIRED,
	      .doc = "Time at which it ends if it is not used, RFC 3339."),
};
#undef V
static const struct field_table login_table = FIELD_TABLE(struct login_view, login_fields);

/* The texts that a view borrows. */
struct login_texts {
	struct str scopes[KEY_SCOPES];
	char began[WHEN_MAX], used[WHEN_MAX], expires[WHEN_MAX];
};

static int64_t login_end_ms(const struct login *l)
{
	int64_t idle = l->used_ms + IDLE_MS, life = l->began_ms + LIFE_MS;

	return idle < life ? idle : life;
}

static struct login_view login_view(const struct login *l, struct login_texts *t, const void *who)
{
	size_t n = 0;

	for (size_t i = 0; i < KEY_SCOPES; i++) {
		if (l->who.scopes >> i & 1)
			t->scopes[n++] = str_of(key_scope_names[i]);
	}
	when_text(t->began, l->began_ms);
	when_text(t->used, l->used_ms);
	when_text(t->expires, login_end_ms(l));
	return (struct login_view){ .id = str_of(l->id),
				    .name = str_of(l->name),
				    .scopes = { t->scopes, n },
				    .current = who == &l->who,
				    .began_at = str_of(t->began),
				    .used_at = str_of(t->used),
				    .expires_at = str_of(t->expires) };
}

/* ---- the end of log-ins -------------------------------------------------------------------- */

static void login_end(struct page *p, struct login *l)
{
	if (l->who.ended)
		return;
	l->who.ended = true;
	p->saved_ms = 0;
	log_info("a browser's log-in as %s is over", l->name);
	p->o.on_login(p->o.owner, &l->who, "login.end", l->id);
	uv_timer_start(&p->timer, p->timer.timer_cb, 0, uv_timer_get_repeat(&p->timer));
}

/* By a person's word, which holds for the next hub, too. */
static int login_end_asked(struct page *p, struct login *l, struct err *e)
{
	int rc = 0;

	if (l->kept) {
		l->who.ended = true;
		rc = kept_write(p, e);
		l->who.ended = false;
	}
	if (rc == 0 || e->code == ERR_UNSURE)
		login_end(p, l);
	return rc;
}

static bool login_is_over(const struct login *l, int64_t now)
{
	return l->by->ended || now >= login_end_ms(l);
}

void login_sweep(struct page *p)
{
	int64_t now = clock_unix_ms();
	struct err ignored;

	for (struct login *l = p->logins; l; l = l->next) {
		if (!l->who.ended && login_is_over(l, now))
			login_end(p, l);
		if (!l->who.ended || l->told)
			continue;
		l->told = true;
		p->o.on_ended(p->o.owner, &l->who);
	}
	if (p->logins && now - p->saved_ms >= SAVE_MS)
		kept_write(p, &ignored);
}

static void link_drop(struct link *k)
{
	secret_free(take_ptr(k->code));
	*k = (struct link){ .code = NULL };
}

void page_end_of(struct page *p, const struct principal *who)
{
	for (size_t i = 0; i < LINKS_MAX; i++) {
		if (p->links[i].by == who)
			link_drop(&p->links[i]);
	}
	for (struct login *l = p->logins; l; l = l->next) {
		if (l->by == who)
			login_end(p, l);
	}
}

void login_free_all(struct page *p)
{
	for (size_t i = 0; i < LINKS_MAX; i++)
		link_drop(&p->links[i]);
	while (p->logins) {
		struct login *l = p->logins;

		p->logins = l->next;
		free(l);
	}
}

/* Compares as much for any secret. A hash tells a stranger nothing of the secret. */
static bool login_has(const char hash[SHA256_HEX], struct str secret)
{
	char is[SHA256_HEX];
	unsigned differs = 0;

	sha256_hex(secret, is);
	for (size_t i = 0; i < SHA256_HEX; i++)
		differs |= (unsigned char)(is[i] ^ hash[i]);
	return differs == 0;
}

/* ---- who asks ------------------------------------------------------------------------------ */

/* Hubs on several ports of a host share its cookies, so the name has the port. */
static void cookie_name(struct http_request *q, char ret[COOKIE_NAME_MAX])
{
	struct http_authority a;

	if (!http_authority_parse(http_request_header(q, STR_LIT("Host")), &a) || a.port < 0)
		a.port = 0;
	snprintf(ret, COOKIE_NAME_MAX, "%sholt_session_%d", http_request_is_tls(q) ? "__Host-" : "",
		 a.port);
}

/* Servers on other ports can have set some of this name, too, even with another log-in's value. */
static bool login_has_cookie(const struct login *l, struct http_request *q)
{
	struct str cookies = http_request_header(q, STR_LIT("Cookie")), value;
	char name[COOKIE_NAME_MAX];
	bool found = false;

	cookie_name(q, name);
	while (!found && http_cookie_next(&cookies, name, &value))
		found = login_has(l->cookie, value);
	return found;
}

/* The key, which a WebSocket names as a protocol; STR_NONE: there is none. */
static struct str key_of(struct http_request *q)
{
	struct str list = http_request_header(q, STR_LIT("Sec-WebSocket-Protocol"));

	if (!http_request_header(q, STR_LIT("Upgrade")).p)
		return http_request_header(q, STR_LIT(KEY_HEADER));
	while (list.n > 0) {
		const char *end = memchr(list.p, ',', list.n);
		struct str one = { list.p, end ? (size_t)(end - list.p) : list.n };

		list = end ? (struct str){ end + 1, list.n - one.n - 1 } : STR_NONE;
		one = str_trim(one);
		if (str_starts(one, KEY_PROTOCOL))
			return (struct str){ one.p + strlen(KEY_PROTOCOL),
					     one.n - strlen(KEY_PROTOCOL) };
	}
	return STR_NONE;
}

/* Whether our own page asks, as far as its browser tells. The server has refused every Origin that
 * is not allowed; here those of other pages that are allowed do not count either. */
static bool is_own_page(struct http_request *q)
{
	struct str site = http_request_header(q, STR_LIT("Sec-Fetch-Site"));
	bool changes = http_request_method(q) & ~(unsigned)(HTTP_GET | HTTP_HEAD);

	if (site.p && !str_is(site, "same-origin"))
		return false;
	if (changes || http_request_header(q, STR_LIT("Upgrade")).p)
		return http_request_has_own_origin(q);
	return !http_request_header(q, STR_LIT("Origin")).p || http_request_has_own_origin(q);
}

/* The page asks for these; MCP has sessions of its own. */
static bool is_for_pages(struct str path)
{
	static const char *const below[] = { "/v1/",	 "/api/",   "/session",
					     "/metrics", "/readyz", "/version" };

	for (size_t i = 0; i < ARRAY_LEN(below); i++) {
		if (str_starts(path, below[i]))
			return true;
	}
	return false;
}

const void *page_identify(struct page *p, struct http_request *q)
{
	int64_t now = clock_unix_ms();
	struct str key = key_of(q);
	struct login *l = p->logins;

	if (!key.p || !is_for_pages(http_request_path(q)) || !is_own_page(q))
		return NULL;
	while (l && (l->who.ended || !login_has(l->key, key)))
		l = l->next;
	if (!l || !login_has_cookie(l, q) || login_is_over(l, now))
		return NULL;
	l->used_ms = now;
	return &l->who;
}

static struct login *login_of(const struct page *p, const void *who)
{
	for (struct login *l = p->logins; l; l = l->next) {
		if (&l->who == who)
			return l;
	}
	return NULL;
}

/* ---- links --------------------------------------------------------------------------------- */

struct link_view {
	struct str url, path, expires_at;
};
static const struct field link_fields[] = {
	FIELD(struct link_view, url,
	      .doc = "The link; absent if the hub listens on no TCP address."),
	FIELD(struct link_view, path, .flags = FIELD_REQUIRED,
	      .doc = "Path and fragment of the link."),
	FIELD(struct link_view, expires_at, .flags = FIELD_REQUIRED,
	      .doc = "Time at which the link expires, RFC 3339."),
};
static const struct field_table link_table = FIELD_TABLE(struct link_view, link_fields);

static size_t links_of(const struct page *p, const struct principal *payer)
{
	size_t n = 0;

	for (size_t i = 0; i < LINKS_MAX; i++)
		n += p->links[i].code && principal_payer(p->links[i].by) == payer;
	return n;
}

/* A free place, or that of the oldest link of whoever then has most, so that nobody can push out
 * the links of others. */
static struct link *link_room(struct page *p, const struct principal *by)
{
	struct link *room = NULL;
	size_t most = 0;

	for (size_t i = 0; i < LINKS_MAX; i++) {
		struct link *k = &p->links[i];
		const struct principal *payer = k->code ? principal_payer(k->by) : NULL;
		size_t n = links_of(p, payer) + (payer == principal_payer(by));

		if (!payer)
			return k;
		if (n > most || (n == most && k->until_ms < room->until_ms)) {
			room = k;
			most = n;
		}
	}
	return room;
}

static struct link *link_new(struct page *p, const struct principal *by, struct err *e)
{
	struct link *k = link_room(p, by);

	/* A log-in must not outlive itself by another one, and the page is no place for agents. */
	if (login_of(p, by) || str_starts(str_of(by->name), CONVERSATION_PRINCIPAL)) {
		err_set(e, ERR_DENIED, "a link takes a person's token: holt web prints one");
		return NULL;
	}
	link_drop(k);
	k->code = secret_random("", e);
	if (!k->code)
		return NULL;
	k->by = by;
	k->until_ms = clock_unix_ms() + LINK_MS;
	return k;
}

void login_link(void *owner, struct http_request *q)
{
	struct page *p = owner;
	char path[128], url[512], expires[WHEN_MAX];
	struct link_view view;
	struct err e;
	struct link *k = link_new(p, http_request_principal(q), &e);

	if (!k) {
		http_reply_error(q, &e);
		return;
	}
	p->o.on_login(p->o.owner, k->by, "login.link", "");
	when_text(expires, k->until_ms);
	snprintf(path, sizeof(path), "/login#%.*s",
		 STR_ARG(secret_expose(k->code, "a link for a browser")));
	snprintf(url, sizeof(url), "%s%s", p->o.url, path);
	view = (struct link_view){ *p->o.url ? str_of(url) : STR_NONE, str_of(path),
				   str_of(expires) };
	login_answer(q, &link_table, &view, STR_NONE);
	explicit_bzero(path, sizeof(path));
	explicit_bzero(url, sizeof(url));
}

static struct link *link_find(struct page *p, struct str code, struct err *e)
{
	int64_t now = clock_unix_ms();

	for (size_t i = 0; i < LINKS_MAX; i++) {
		struct link *k = &p->links[i];

		if (k->code && secret_is(k->code, code) && now < k->until_ms && !k->by->ended)
			return k;
	}
	err_set(e, ERR_LINK,
		"the link was used, is too old, or is none of this hub's: holt web prints another");
	return NULL;
}

/* ---- log-ins ------------------------------------------------------------------------------- */

static size_t logins_of(const struct page *p, const struct principal *payer)
{
	size_t n = 0;

	for (const struct login *l = p->logins; l; l = l->next)
		n += !l->who.ended && (!payer || principal_payer(l->by) == payer);
	return n;
}

/* As link_room(): of those of whoever then has most, the one that was unused for longest ends. */
static void login_make_room(struct page *p, const struct principal *by)
{
	struct login *room = NULL;
	size_t most = 0;

	if (logins_of(p, NULL) < LOGINS_MAX)
		return;
	for (struct login *l = p->logins; l; l = l->next) {
		const struct principal *payer = principal_payer(l->by);
		size_t n = l->who.ended ? 0 : logins_of(p, payer) + (payer == principal_payer(by));

		if (n > most || (n == most && n > 0 && l->used_ms <= room->used_ms)) {
			room = l;
			most = n;
		}
	}
	login_end(p, room);
}

struct login *login_new(struct page *p, const struct principal *by, struct err *e)
{
	struct login *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	login_make_room(p, by);
	id_make(l->id, "login");
	snprintf(l->name, sizeof(l->name), "%s", by->name);
	snprintf(l->owner, sizeof(l->owner), "%.*s", STR_ARG(principal_owner(by)));
	l->by = by;
	l->who = (struct principal){ .name = l->name,
				     .owner = l->owner,
				     .scopes = by->scopes,
				     .sees_all = by->sees_all,
				     .payer = principal_payer(by) };
	l->began_ms = l->used_ms = clock_unix_ms();
	l->next = p->logins;
	p->logins = l;
	return l;
}

struct start_request {
	struct str code;
	bool look;
};
static const struct field start_fields[] = {
	FIELD(struct start_request, code, .flags = FIELD_REQUIRED, .min = 1, .max = 128,
	      .doc = "Code of the link, the part after #."),
	FIELD(struct start_request, look,
	      .doc = "Only tell whose link it is, without using it up."),
};
static const struct field_table start_table = FIELD_TABLE(struct start_request, start_fields);

struct started {
	struct str name, key, header;
};
static const struct field started_fields[] = {
	FIELD(struct started, name, .flags = FIELD_REQUIRED,
	      .doc = "Principal whose link it is, and whose rights the log-in has."),
	FIELD(struct started, key, .flags = FIELD_PLAIN,
	      .doc = "Key that the page sends with each request, in addition to the cookie."),
	FIELD(struct started, header, .doc = "Name of the header for the key."),
};
static const struct field_table started_table = FIELD_TABLE(struct started, started_fields);

/* The two secrets of a new log-in. */
struct login_secrets {
	struct secret *cookie, *key;
};

static int login_begin(struct page *p, const struct principal *by, bool encrypted,
		       struct login_secrets *ret, struct err *e)
{
	struct login *l;
	struct err ignored;

	ret->cookie = secret_random("", e);
	ret->key = ret->cookie ? secret_random("", e) : NULL;
	l = ret->key ? login_new(p, by, e) : NULL;
	if (!l)
		return -1;
	sha256_hex(secret_expose(ret->cookie, "hashed"), l->cookie);
	sha256_hex(secret_expose(ret->key, "hashed"), l->key);
	l->kept = encrypted;
	log_info("a browser has logged in as %s", l->name);
	p->o.on_login(p->o.owner, &l->who, "login.begin", l->id);
	kept_write(p, &ignored);
	return 0;
}

/* The page has posted the code of its link: begins a log-in, or only looks. */
static int login_take(struct page *p, struct http_request *q, struct login_secrets *ret,
		      struct str *ret_name, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(BODY_ARENA);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct start_request r;
	const struct principal *by;
	struct link *k;

	if (!http_request_has_own_origin(q))
		return err_set(e, ERR_ORIGIN, "only the page itself logs a browser in");
	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	doc = json_parse(http_request_body(q), NULL, e);
	if (!doc || field_decode(&start_table, json_root(doc), a, &r, e) < 0)
		return -1;
	k = link_find(p, r.code, e);
	if (!k)
		return -1;
	by = k->by;
	*ret_name = str_of(by->name);
	if (r.look)
		return 0;
	link_drop(k);
	return login_begin(p, by, http_request_is_encrypted(q), ret, e);
}

static int login_cookie(struct http_request *q, const struct secret *value, struct buf *to,
			struct err *e)
{
	char name[COOKIE_NAME_MAX];

	cookie_name(q, name);
	if (!buf_reserve(to, to->max, e))
		return -1;
	return buf_addf(to, e, "%s=%.*s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%lld%s", name,
			STR_ARG(secret_expose(value, "a browser's cookie")), LIFE_MS / 1000,
			http_request_is_tls(q) ? "; Secure" : "");
}

void login_start(void *owner, struct http_request *q)
{
	autowipe struct buf cookie = BUF_INIT(512);
	struct login_secrets secrets = { NULL, NULL };
	struct started answer = { .name = STR_NONE };
	struct err e = ERR_INIT;

	if (login_take(owner, q, &secrets, &answer.name, &e) < 0 ||
	    (secrets.cookie && login_cookie(q, secrets.cookie, &cookie, &e) < 0)) {
		http_reply_error(q, &e);
	} else {
		if (secrets.key) {
			answer.key = secret_expose(secrets.key, "shown to the page");
			answer.header = STR_LIT(KEY_HEADER);
		}
		login_answer(q, &started_table, &answer, buf_str(&cookie));
	}
	secret_free(secrets.cookie);
	secret_free(secrets.key);
}

struct nothing {
	bool ok;
};
static const struct field nothing_fields[] = {
	FIELD(struct nothing, ok, .flags = FIELD_REQUIRED, .doc = "Always true."),
};
static const struct field_table nothing_table = FIELD_TABLE(struct nothing, nothing_fields);

static struct login *login_asking(struct page *p, struct http_request *q)
{
	struct login *l = login_of(p, http_request_principal(q));
	struct err e;

	if (l)
		return l;
	err_set(&e, ERR_INVALID, "only a browser's log-in has a session here");
	http_reply_error(q, &e);
	return NULL;
}

void login_show(void *owner, struct http_request *q)
{
	struct login *l = login_asking(owner, q);
	struct login_texts texts;
	struct login_view view;

	if (!l)
		return;
	view = login_view(l, &texts, &l->who);
	login_answer(q, &login_table, &view, STR_NONE);
}

void login_leave(void *owner, struct http_request *q)
{
	struct login *l = login_asking(owner, q);
	char name[COOKIE_NAME_MAX], cookie[2 * COOKIE_NAME_MAX];
	struct err e = ERR_INIT;

	if (!l)
		return;
	if (login_end_asked(owner, l, &e) < 0) {
		http_reply_error(q, &e);
		return;
	}
	cookie_name(q, name);
	snprintf(cookie, sizeof(cookie), "%s=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0%s",
		 name, http_request_is_tls(q) ? "; Secure" : "");
	login_answer(q, &nothing_table, &(struct nothing){ true }, str_of(cookie));
}

/* Those of its own owner, or all. */
static bool login_sees(const struct principal *who, const struct login *l)
{
	return !l->who.ended &&
	       (who->sees_all || str_eq(principal_owner(who), principal_owner(&l->who)));
}

struct logins_view {
	struct {
		const struct login_view *p;
		size_t n;
	} sessions;
};
static const struct field logins_fields[] = {
	FIELD_OBJECTS(struct logins_view, sessions, login_table, .flags = FIELD_REQUIRED,
		      .max = LOGINS_MAX, .doc = "Log-ins, newest first."),
};
static const struct field_table logins_table = FIELD_TABLE(struct logins_view, logins_fields);

void login_list(void *owner, struct http_request *q)
{
	const struct principal *who = http_request_principal(q);
	const struct page *p = owner;
	struct login_texts texts[LOGINS_MAX];
	struct login_view views[LOGINS_MAX];
	struct logins_view all = { { views, 0 } };

	for (const struct login *l = p->logins; l && all.sessions.n < LOGINS_MAX; l = l->next) {
		size_t n = all.sessions.n;

		if (!login_sees(who, l))
			continue;
		views[n] = login_view(l, &texts[n], who);
		all.sessions.n++;
	}
	login_answer(q, &logins_table, &all, STR_NONE);
}

void login_end_one(void *owner, struct http_request *q)
{
	struct str id = http_request_segment(q, "id");
	struct page *p = owner;
	struct login *l = p->logins;
	struct err e = ERR_INIT;

	while (l && !(str_is(id, l->id) && login_sees(http_request_principal(q), l)))
		l = l->next;
	if (!l)
		err_set(&e, ERR_ROUTE, "there is no such log-in");
	if (l && login_end_asked(p, l, &e) == 0)
		login_answer(q, &nothing_table, &(struct nothing){ true }, STR_NONE);
	else
		http_reply_error(q, &e);
}
