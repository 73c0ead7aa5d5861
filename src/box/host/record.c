/* The record of a sandbox for a later process, as the warden stores it (struct kept_sandbox). No
 * sandbox can write any of it. */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/host/internal.h"

enum {
	ARGV_BYTES = 16 * 1024,
	RECORD_MAX = ENV_BYTES_MAX + PATH_MAX + ARGV_BYTES + RECORD_BYTES_MAX + 1024
};

static_assert(RECORD_MAX + 64 <= WIRE_MAX, "a record fits into a message");

static_assert(sizeof(((struct kept_sandbox *)0)->id) == sizeof(((struct sandbox *)0)->id) &&
		      sizeof(((struct kept_sandbox *)0)->template) ==
			      sizeof(((struct sandbox *)0)->template),
	      "a record has room for what names a sandbox");

/* ---- the caller's ---------------------------------------------------------------------------- */

int record_set(struct sandbox *sb, struct str record, struct err *e)
{
	char *copy;

	if (record.n > RECORD_BYTES_MAX)
		return err_set(e, ERR_TOO_LARGE, "record: at most %d bytes", RECORD_BYTES_MAX);
	copy = mem_dup(record.p, record.n);
	if (!copy)
		return err_set(e, ERR_LIMIT, "out of memory");
	free(sb->record);
	sb->record = copy;
	sb->record_n = record.n;
	return 0;
}

struct str sandbox_record(const struct sandbox *sb)
{
	return (struct str){ sb->record, sb->record_n };
}

int sandbox_set_record(struct sandbox *sb, struct str record, struct err *e)
{
	if (!sb->live || sb->destroying)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sb->id);
	if (record_set(sb, record, e) < 0)
		return -1;
	return sb->box->warden_dir ? record_send(sb, e) : 0;
}

bool sandbox_adopted(const struct sandbox *sb)
{
	return sb->adopted;
}

/* ---- to the warden --------------------------------------------------------------------------- */

static int add_texts(struct buf *b, char *const *texts, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (buf_add(b, texts[i], strlen(texts[i]) + 1, e) < 0)
			return -1;
	}
	return 0;
}

static int write_record(const struct sandbox *sb, struct buf *b, struct err *e)
{
	struct kept_sandbox h = {
		.limits = sb->limits,
		.ttl_ms = sb->ttl_ms,
		.n_env = (uint32_t)sb->n_env,
		.n_argv = (uint32_t)sb->n_argv,
		.record_n = (uint32_t)sb->record_n,
		.from_pool = sb->from_pool,
	};

	memcpy(h.id, sb->id, sizeof(h.id));
	memcpy(h.template, sb->template, sizeof(h.template));
	if (buf_add(b, &h, sizeof(h), e) < 0 || buf_add(b, sb->cwd, strlen(sb->cwd) + 1, e) < 0 ||
	    add_texts(b, sb->env, sb->n_env, e) < 0 || add_texts(b, sb->argv, sb->n_argv, e) < 0)
		return -1;
	return buf_add(b, sb->record, sb->record_n, e);
}

int record_send(struct sandbox *sb, struct err *e)
{
	autobuf struct buf b = BUF_INIT(sizeof(struct wm_record) + RECORD_MAX);
	const struct wm_record m = {
		.h = { WM_RECORD, 0 },
		.key = sb->key,
		.dies_at_ms = sb->dies_at_ms,
		.paused = sb->paused,
		.idle_ms = sb->idle_ms,
	};

	if (buf_add(&b, &m, sizeof(m), e) < 0 || write_record(sb, &b, e) < 0)
		return -1;
	return box_send(sb->box, b.p, b.n, e);
}

/* ---- from the warden ------------------------------------------------------------------------- */

/* Returns the string at *at and moves *at after it; NULL: there is none. */
static char *read_string(const char **at, const char *end)
{
	const char *nul = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
	char *s = nul ? strdup(*at) : NULL;

	if (nul)
		*at = nul + 1;
	return s;
}

/* Reads n strings; *ret_n counts them even on failure. NULL or the array, owned by the caller. */
static char **read_texts(const char **at, const char *end, uint32_t n, size_t *ret_n)
{
	char **texts = calloc(n + 1, sizeof(*texts));

	while (texts && *ret_n < n && (texts[*ret_n] = read_string(at, end)))
		++*ret_n;
	return texts;
}

struct sandbox *record_read(struct box *box, const char *p, size_t n, struct err *e)
{
	const char *at = p + sizeof(struct kept_sandbox), *end = p + n;
	struct sandbox *sb = sandbox_alloc(box);
	struct kept_sandbox h;

	if (!sb || n < sizeof(h)) {
		err_set(e, sb ? ERR_BUG : ERR_LIMIT, "the record of a sandbox can't be read");
		sandbox_unref(sb);
		return NULL;
	}
	memcpy(&h, p, sizeof(h));
	memcpy(sb->id, h.id, sizeof(sb->id));
	memcpy(sb->template, h.template, sizeof(sb->template));
	sb->id[sizeof(sb->id) - 1] = sb->template[sizeof(sb->template) - 1] = '\0';
	sb->limits = h.limits;
	sb->ttl_ms = h.ttl_ms;
	sb->from_pool = h.from_pool;
	sb->adopted = true;
	sb->announced = true;
	sb->cwd = read_string(&at, end);
	sb->env = read_texts(&at, end, h.n_env, &sb->n_env);
	sb->argv = read_texts(&at, end, h.n_argv, &sb->n_argv);
	if (sb->cwd && sb->env && sb->argv && sb->n_env == h.n_env && sb->n_argv == h.n_argv &&
	    (size_t)(end - at) == h.record_n &&
	    record_set(sb, (struct str){ at, h.record_n }, e) == 0)
		return sb;
	err_set(e, ERR_BUG, "the record of a sandbox can't be read");
	sandbox_unref(sb);
	return NULL;
}
