/*
 * The store, as used from the loop. Reading looks at once into a file that is only replaced as a
 * whole. Writing waits for a lock and the disk, so it is done in the work pool, one change after
 * the other; until a change is written, readers here see it as done. A change that can't be written
 * is logged, since a token is valid in any case.
 */
#include "base/log.h"
#include "mcp/oauth/internal.h"

enum { CHANGES_MAX = 64 }; /* changes that wait; each has at most one record */

struct oauth_change {
	struct oauth_change *next;
	struct buf name, end, text, was;
	bool removes, ends, compares; /* which of them are set */
	int rc;
	struct err why;
	void (*done)(void *owner, const struct err *e); /* may be NULL */
	void *owner;
};

static void change_free(struct oauth_change *c)
{
	if (!c)
		return;
	buf_fini(&c->name);
	buf_fini(&c->end);
	buf_wipe(&c->text);
	buf_wipe(&c->was);
	free(c);
}
AUTO_DEFINE(change_free, struct oauth_change)

static int keep_copy(struct buf *to, struct str s, size_t max, struct err *e)
{
	*to = BUF_INIT(max);
	if (s.n > 0 && !buf_reserve(to, s.n, e))
		return -1;
	return buf_add(to, s.p, s.n, e);
}

static struct oauth_change *change_new(const struct oauth_store_change *from, struct err *e)
{
	AUTO(change_free) struct oauth_change *c = calloc(1, sizeof(*c));

	if (!c)
		return oauth_no_memory(e), NULL;
	c->removes = !from->text.p;
	c->ends = from->end.p != NULL;
	c->compares = from->was.p != NULL;
	if (keep_copy(&c->name, from->name, OAUTH_STORE_NAME_MAX, e) < 0 ||
	    keep_copy(&c->end, from->end, OAUTH_STORE_NAME_MAX, e) < 0 ||
	    keep_copy(&c->text, from->text, OAUTH_STORE_TEXT_MAX, e) < 0 ||
	    keep_copy(&c->was, from->was, OAUTH_STORE_TEXT_MAX, e) < 0)
		return NULL;
	return take_ptr(c);
}

static struct oauth_store_change view(const struct oauth_change *c)
{
	return (struct oauth_store_change){
		.name = buf_str(&c->name),
		.end = c->ends ? buf_str(&c->end) : STR_NONE,
		.text = c->removes ? STR_NONE : buf_str(&c->text),
		.was = c->compares ? buf_str(&c->was) : STR_NONE,
	};
}

/* --- writing --- */

static void start(struct mcp_oauth *o);

static void in_pool(uv_work_t *work)
{
	struct mcp_oauth *o = work->data;
	struct oauth_change *c = o->changes;
	struct oauth_store_change change = view(c);

	c->rc = oauth_store_change(oauth_store_of(o), &change, &c->why);
}

static void after(uv_work_t *work, int status)
{
	struct mcp_oauth *o = work->data;
	AUTO(change_free) struct oauth_change *c = o->changes;

	o->changes = c->next;
	o->changes_n--;
	if (c->rc < 0) {
		log_warn("what a login brought could not be kept: %s", c->why.msg);
		oauth_token_not_kept(o, buf_str(&c->text));
	}
	if (c->done)
		c->done(c->owner, c->rc < 0 ? &c->why : NULL);
	o->writes = o->changes != NULL;
	if (o->writes)
		start(o);
	else
		oauth_handle_gone(o);
}

static void start(struct mcp_oauth *o)
{
	o->work.data = o;
	/* without a callback this could only fail */
	uv_queue_work(o->loop, &o->work, in_pool, after);
}

static void keep_append(struct mcp_oauth *o, struct oauth_change *c)
{
	struct oauth_change **end = &o->changes;

	while (*end)
		end = &(*end)->next;
	*end = c;
	o->changes_n++;
	if (o->writes)
		return;
	o->writes = true;
	o->handles++;
	start(o);
}

int oauth_keep(struct mcp_oauth *o, const struct oauth_store_change *change,
	       void (*done)(void *owner, const struct err *e), void *owner, struct err *e)
{
	struct oauth_change *c;

	if (!oauth_store_is_on_disk(oauth_store_of(o))) {
		if (oauth_store_change(oauth_store_of(o), change, e) < 0)
			return -1;
		if (done)
			done(owner, NULL);
		return 0;
	}
	if (o->changes_n == CHANGES_MAX)
		return err_set(e, ERR_LIMIT, "too much waits to be written to the token store");
	c = change_new(change, e);
	if (!c)
		return -1;
	c->done = done;
	c->owner = owner;
	keep_append(o, c);
	return 0;
}

/* --- reading --- */

/* The last waiting change of that name. A change that compares counts as done; if it is not, the
 * next read shows it. */
static const struct oauth_change *keep_find(const struct mcp_oauth *o, struct str name)
{
	const struct oauth_change *last = NULL;

	for (const struct oauth_change *c = o->changes; c; c = c->next) {
		struct oauth_store_change change = view(c);

		if (oauth_store_is_of(&change, name))
			last = c;
	}
	return last;
}

int oauth_kept(struct mcp_oauth *o, struct str name, struct json_doc **ret, struct secret **text,
	       struct err *e)
{
	static const struct json_options bounds = { .secret = true };
	autowipe struct buf raw = BUF_INIT(OAUTH_STORE_TEXT_MAX);
	AUTO(json_free) struct json_doc *d = NULL;
	const struct oauth_change *c = keep_find(o, name);
	int rc = 0;

	if (!buf_reserve(&raw, OAUTH_STORE_TEXT_MAX, e))
		return -1;
	if (!c)
		rc = oauth_store_get(oauth_store_of(o), name, &raw, e);
	else if (!c->removes)
		rc = buf_add(&raw, c->text.p, c->text.n, e) < 0 ? -1 : 1;
	if (rc <= 0)
		return rc;
	d = json_parse(buf_str(&raw), &bounds, e);
	if (!d || (text && !(*text = secret_new(buf_str(&raw), e))))
		return -1;
	*ret = take_ptr(d);
	return 1;
}

/* --- members of records --- */

void oauth_record_put(struct json_writer *w, const char *key, struct str s)
{
	if (!s.p)
		return;
	json_put_str(w, key, s);
}

int oauth_record_text(const struct json_val *v, const char *key, char **ret, struct err *e)
{
	struct str s = json_str(json_get(v, key));

	*ret = s.p ? strndup(s.p, s.n) : NULL;
	return s.p && !*ret ? oauth_no_memory(e) : 0;
}

int oauth_record_secret(const struct json_val *v, const char *key, struct secret **ret,
			struct err *e)
{
	struct str s = json_str(json_get(v, key));

	*ret = s.p ? secret_new(s, e) : NULL;
	return s.p && !*ret ? -1 : 0;
}

int oauth_record_key(const struct json_val *v, const char *key, struct sign_key **ret,
		     struct err *e)
{
	struct str pem = json_str(json_get(v, key));

	*ret = pem.p ? sign_key_read(pem, e) : NULL;
	return pem.p && !*ret ? -1 : 0;
}
