#include "guard/gate/login.h"

#include <stdio.h>

#include "json/document/write.h"
#include "op/network.h"

static const char refresh_token[] = "refresh_token", id_token[] = "id_token";
static const struct str usual[] = { STR_LIT("access_token"), STR_LIT("refresh_token"),
				    STR_LIT("id_token") };

void login_fini(struct login *l)
{
	for (size_t i = 0; i < l->n; i++)
		secret_free(l->of[i].value);
	l->n = 0;
}

bool login_refreshes(const struct login_token *t)
{
	return strcmp(t->member, refresh_token) == 0;
}

bool login_goes_to_hosts(const struct login_token *t)
{
	return !login_refreshes(t) && strcmp(t->member, id_token) != 0;
}

int login_shown(const struct login_token *t, struct buf *to, struct err *e)
{
	struct str claims = nw_claims(secret_expose(t->value, "its claims are shown"));

	if (buf_add(to, claims.p, claims.n, e) < 0)
		return -1;
	return buf_addf(to, e, "%s", t->mark);
}

/* ---- changing ------------------------------------------------------------------------------ */

static bool is_fit(struct str value)
{
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] <= ' ' || value.p[i] > '~')
			return false;
	}
	return value.n >= NW_SECRET_MIN && value.n <= NW_SECRET_MAX;
}

/* mark: STR_NONE: the one that it has, or a new one. NULL with *e. */
static struct login_token *login_put(struct login *l, struct str member, struct str mark,
				     struct str value, struct err *e)
{
	struct login_token *t = l->of;

	while (t < l->of + l->n && !str_is(member, t->member))
		t++;
	if (!is_fit(value))
		return err_set(e, ERR_INVALID, "the token %.*s is no text of %d to %d letters",
			       STR_CUT(member, 32), NW_SECRET_MIN, NW_SECRET_MAX),
		       NULL;
	if (t == l->of + LOGIN_TOKENS_MAX || member.n >= sizeof(t->member))
		return err_set(e, ERR_LIMIT, "a log-in has at most %d tokens", LOGIN_TOKENS_MAX),
		       NULL;
	if (t == l->of + l->n) {
		*t = (struct login_token){ .value = NULL };
		memcpy(t->member, member.p, member.n);
		bound_placeholder(t->mark);
		l->n++;
	}
	if (mark.p)
		snprintf(t->mark, sizeof(t->mark), "%.*s", STR_ARG(mark));
	secret_free(t->value);
	t->value = secret_new(value, e);
	return t->value ? t : NULL;
}

static bool is_mark(struct str mark)
{
	return str_starts(mark, NW_PLACEHOLDER) && mark.n == BOUND_PLACEHOLDER - 1;
}

int login_read(struct login *l, struct str text, struct err *e)
{
	const struct json_options o = { .secret = true };
	struct err not_json;
	AUTO(json_free) struct json_doc *doc = json_parse(text, &o, &not_json);
	struct json_iter it = json_iter(json_root(doc));

	while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
		text.n--;
	if (!doc || json_type(json_root(doc)) != JSON_OBJECT)
		return login_put(l, usual[0], STR_NONE, text, e) ? 0 : -1;
	while (json_next(&it)) {
		struct str mark = json_str(json_get(it.val, "mark"));

		if (!is_mark(mark))
			return err_set(e, ERR_STORE_CORRUPT, "the tokens of a log-in");
		if (!login_put(l, it.key, mark, json_str(json_get(it.val, "value")), e))
			return -1;
	}
	return 0;
}

int login_write(const struct login *l, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	for (size_t i = 0; i < l->n; i++) {
		json_write_key(&w, l->of[i].member);
		json_write_object(&w);
		json_write_key(&w, "mark");
		json_write_text(&w, l->of[i].mark);
		json_write_key(&w, "value");
		json_write_str(&w, secret_expose(l->of[i].value, "sealed in the store"));
		json_write_object_end(&w);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* ---- answers ------------------------------------------------------------------------------- */

struct taking {
	struct login *l;
	const struct config_login *conf;
	struct json_writer w;
	size_t taken;
};

static bool is_token(const struct config_login *conf, struct str member)
{
	const struct str *names = conf->members.n ? conf->members.p : usual;
	size_t n = conf->members.n ? conf->members.n : ARRAY_LEN(usual);

	for (size_t i = 0; i < n; i++) {
		if (str_eq(names[i], member))
			return true;
	}
	return false;
}

static int take_token(struct taking *t, struct str member, struct str value, struct err *e)
{
	const struct login_token *token = login_put(t->l, member, STR_NONE, value, e);
	autowipe struct buf shown = BUF_INIT(NW_SECRET_MAX + BOUND_PLACEHOLDER);

	if (!token || !buf_reserve(&shown, shown.max, e) || login_shown(token, &shown, e) < 0)
		return -1;
	json_write_str(&t->w, buf_str(&shown));
	t->taken++;
	return 0;
}

/* The parser has bounded the depth. */
static int take_value(struct taking *t, const struct json_val *v, struct err *e)
{
	bool object = json_type(v) == JSON_OBJECT;
	struct json_iter it = json_iter(v);

	if (!object && json_type(v) != JSON_ARRAY) {
		json_write_val(&t->w, v);
		return 0;
	}
	if (object)
		json_write_object(&t->w);
	else
		json_write_array(&t->w);
	while (json_next(&it)) {
		bool token = object && json_type(it.val) == JSON_STR && json_str(it.val).n > 0 &&
			     is_token(t->conf, it.key);

		if (object)
			json_write_key_str(&t->w, it.key);
		if ((token ? take_token(t, it.key, json_str(it.val), e)
			   : take_value(t, it.val, e)) < 0)
			return -1;
	}
	if (object)
		json_write_object_end(&t->w);
	else
		json_write_array_end(&t->w);
	return 0;
}

int login_take(struct login *l, const struct config_login *conf, struct str body, struct buf *ret,
	       size_t *ret_taken, struct err *e)
{
	const struct json_options o = { .bytes = NW_TOKENS_MAX, .depth = 16, .secret = true };
	AUTO(json_free) struct json_doc *doc = json_parse(body, &o, e);
	struct taking t = { .l = l, .conf = conf };

	if (!doc)
		return err_wrap(e, "the answer with tokens");
	t.w = json_writer(ret);
	if (take_value(&t, json_root(doc), e) < 0 || json_write_done(&t.w, e) < 0)
		return -1;
	*ret_taken = t.taken;
	return 0;
}
