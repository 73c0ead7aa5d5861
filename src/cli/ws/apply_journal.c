/*
 * Journals of `holt ws apply`: fields that end in NUL, since paths may have any other byte. A
 * journal is written under another name, synced and renamed, so it is there as a whole or not at
 * all.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "box/archive/tree.h"
#include "cli/ws/apply.h"

#define HEAD "holt apply 1"
#define END "end"

void apply_plan_fini(struct apply_plan *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->ops[i].path);
	free(p->ops);
	*p = (struct apply_plan){ 0 };
}

struct apply_op *apply_plan_add(struct apply_plan *p, char kind, const char *path, struct err *e)
{
	struct apply_op *ops = p->ops;

	if ((p->n & (p->n - 1)) == 0) /* full at each power of two */
		ops = realloc(p->ops, (p->n ? 2 * p->n : 1) * sizeof(*ops));
	if (ops)
		p->ops = ops;
	if (ops)
		ops[p->n] = (struct apply_op){ .kind = kind, .path = strdup(path) };
	if (!ops || !ops[p->n].path) {
		err_sys(e, ENOMEM, "list the changes");
		return NULL;
	}
	return &ops[p->n++];
}

int apply_plan_id(struct apply_plan *p, struct err *e)
{
	unsigned char bytes[APPLY_ID / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_sys(e, errno, "make a name");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(p->id + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_state(FILE *to, const struct apply_state *s)
{
	fprintf(to, "%c%03o%s%c", s->type, s->mode, s->hash, 0);
}

static void put_plan(FILE *to, const struct apply_plan *p)
{
	fprintf(to, HEAD "%c%s%c%d%c%s%c%s%c%s%c%s%c", 0, p->id, 0, p->undo, 0, p->to.workspace, 0,
		p->to.id, 0, p->base.workspace, 0, p->base.id, 0);
	for (size_t i = 0; i < p->n; i++) {
		const struct apply_op *op = &p->ops[i];

		fprintf(to, "%c%s%c%u%c%ju%c", op->kind, op->path, 0, op->n, 0,
			(uintmax_t)op->staged, 0);
		put_state(to, &op->old);
		put_state(to, &op->new);
	}
	fprintf(to, END "%c", 0);
}

int apply_journal_write(const struct apply *a, const char *name, struct err *e)
{
	int fd = openat(a->data, "new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
	bool failed;

	if (!to)
		return err_sys(e, errno, "write the journal");
	put_plan(to, &a->plan);
	failed = fflush(to) != 0 || ferror(to) || fsync(fd) < 0;
	if (fclose(to) != 0 || failed || renameat(a->data, "new", a->data, name) < 0 ||
	    fsync(a->data) < 0)
		return err_sys(e, errno, "write the journal");
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
	FILE *from;
	char *text; /* the last field */
	size_t cap;
};

static const char *get(struct reader *r)
{
	ssize_t n = getdelim(&r->text, &r->cap, '\0', r->from);

	return n > 0 && r->text[n - 1] == '\0' ? r->text : NULL;
}

static bool get_text(struct reader *r, char *ret, size_t size)
{
	const char *text = get(r);

	return text && snprintf(ret, size, "%s", text) < (int)size;
}

static bool get_number(struct reader *r, uintmax_t *ret)
{
	const char *text = get(r);
	char *end;

	if (!text || !*text)
		return false;
	*ret = strtoumax(text, &end, 10);
	return !*end;
}

static bool get_state(struct reader *r, struct apply_state *ret)
{
	const char *text = get(r);

	if (!text || strlen(text) < 4 || !strchr("-fldo", *text))
		return false;
	ret->type = *text++;
	ret->mode = 0;
	for (int i = 0; i < 3; i++, text++) {
		if (*text < '0' || *text > '7')
			return false;
		ret->mode = ret->mode * 8 + (uint32_t)(*text - '0');
	}
	return snprintf(ret->hash, sizeof(ret->hash), "%s", text) < (int)sizeof(ret->hash);
}

static bool get_head(struct reader *r, struct apply_plan *p)
{
	uintmax_t undo;

	if (!str_is(str_of(get(r)), HEAD) || !get_text(r, p->id, sizeof(p->id)) ||
	    !get_number(r, &undo) || !get_text(r, p->to.workspace, sizeof(p->to.workspace)) ||
	    !get_text(r, p->to.id, sizeof(p->to.id)) ||
	    !get_text(r, p->base.workspace, sizeof(p->base.workspace)) ||
	    !get_text(r, p->base.id, sizeof(p->base.id)))
		return false;
	p->undo = undo != 0;
	return true;
}

static bool get_ops(struct reader *r, struct apply_plan *p, struct err *e)
{
	const char *text;

	while ((text = get(r)) && strcmp(text, END) != 0) {
		struct apply_op *op = *text && strchr("RXMACP", *text)
					    ? apply_plan_add(p, *text, text + 1, e)
					    : NULL;
		uintmax_t n, staged;

		if (!op || !get_number(r, &n) || !get_number(r, &staged) ||
		    !get_state(r, &op->old) || !get_state(r, &op->new))
			return false;
		op->n = (unsigned)n;
		op->staged = (ino_t)staged;
	}
	return text != NULL;
}

int apply_journal_read(const struct apply *a, const char *name, bool heads, struct apply_plan *ret,
		       struct err *e)
{
	int fd = openat(a->data, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct reader r = { .from = fd < 0 ? NULL : fdopen(fd, "r") };
	bool fine;

	if (!r.from)
		return errno == ENOENT ? 0 : err_sys(e, errno, "read the journal");
	fine = get_head(&r, ret) && (heads || get_ops(&r, ret, e));
	free(r.text);
	fclose(r.from);
	return fine ? 1 : err_set(e, ERR_IO, "the journal of this folder is damaged");
}

void apply_journal_clean(const struct apply *a)
{
	struct apply_plan last = { 0 };
	struct err ignored = ERR_INIT;
	char keep[32];
	DIR *dir = NULL;
	int fd = -1;

	if (apply_journal_read(a, "last", true, &last, &ignored) < 0)
		return;
	snprintf(keep, sizeof(keep), "saved-%s", last.id);
	fd = openat(a->data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *d; dir && (d = readdir(dir));) {
		if (strncmp(d->d_name, "saved-", 6) == 0 && strcmp(d->d_name, keep) != 0)
			tree_remove(a->data, d->d_name);
	}
	if (dir)
		closedir(dir);
}
