/* A revision of the hub as a list of what is in it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/ws/apply.h"

#define BYTES_MAX (1ull << 37) /* a workspace may have 64 GiB */

struct fetch {
	struct apply *a;
	struct apply_list *list;
	struct tar_reader reader;
	bool staged, ended;
	int file; /* being written, or -1 */
};

int apply_order(const char *x, const char *y)
{
	while (*x && *x == *y) {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : (int)(unsigned char)*x * 2) -
	       (*y == '/' ? 1 : (int)(unsigned char)*y * 2);
}

static int item_order(const void *x, const void *y)
{
	return apply_order(((const struct apply_item *)x)->path,
			   ((const struct apply_item *)y)->path);
}

void apply_list_fini(struct apply_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->p[i].path);
	free(l->p);
	*l = (struct apply_list){ 0 };
}

static struct apply_item *list_add(struct apply_list *l, const char *path, struct err *e)
{
	struct apply_item *p = l->p;

	if (l->n >= APPLY_ENTRIES_MAX) {
		err_set(e, ERR_TOO_LARGE, "the revision has too many files");
		return NULL;
	}
	if ((l->n & (l->n - 1)) == 0) /* full at each power of two */
		p = realloc(l->p, (l->n ? 2 * l->n : 1) * sizeof(*p));
	if (p)
		l->p = p;
	if (p)
		p[l->n] = (struct apply_item){ .path = strdup(path) };
	if (!p || !p[l->n].path) {
		err_sys(e, ENOMEM, "list the files");
		return NULL;
	}
	return &p[l->n++];
}

static void apply_fetch_look(struct fetch *f, struct apply_item *it)
{
	if (f->staged && apply_look(f->a, it->path, &it->here, &it->seen) < 0)
		it->here_errnum = errno;
}

static int begin_content(struct fetch *f, struct apply_item *it, struct err *e)
{
	if (!f->staged)
		return 0;
	it->n = ++f->a->next;
	f->file = openat(f->a->stage, apply_number(it->n).text,
			 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return f->file < 0 ? err_sys(e, errno, "write into the folder") : 0;
}

static int take_link(struct fetch *f, struct apply_item *it, struct err *e)
{
	const char *target = f->reader.entry.link;

	it->is.type = APPLY_LINK;
	it->is.mode = 0777;
	hash_add(f->a->hash, target, strlen(target));
	hash_end(f->a->hash, it->is.hash);
	apply_fetch_look(f, it);
	if (!f->staged || apply_same(&it->is, &it->here))
		return 0;
	it->n = ++f->a->next;
	return symlinkat(target, f->a->stage, apply_number(it->n).text) < 0
		     ? err_sys(e, errno, "write into the folder")
		     : 0;
}

static int take_entry(struct fetch *f, struct err *e)
{
	const struct tar_entry *t = &f->reader.entry;
	struct apply_item *it;
	char path[TAR_PATH_MAX];

	snprintf(path, sizeof(path), "%s", t->path);
	if (!tar_path_clean(path))
		return err_set(e, ERR_TRANSPORT, "the hub's archive has a path that leads upwards");
	if (strcmp(path, ".") == 0)
		return 0;
	f->list->bytes += t->size;
	if (f->list->bytes > BYTES_MAX)
		return err_set(e, ERR_TOO_LARGE, "the revision has too many bytes");
	it = list_add(f->list, path, e);
	if (!it)
		return -1;
	it->is.mode = t->mode & 0777;
	switch (t->type) {
	case TAR_DIRECTORY:
		it->is.type = APPLY_DIR;
		apply_fetch_look(f, it);
		return 0;
	case TAR_SYMLINK:
		return take_link(f, it, e);
	case TAR_FILE:
		it->is.type = APPLY_FILE;
		return begin_content(f, it, e);
	case TAR_HARDLINK:
		break;
	}
	return err_set(e, ERR_TRANSPORT, "the hub's archive has a hard link");
}

static int take_content(struct fetch *f, struct err *e)
{
	hash_add(f->a->hash, f->reader.content, f->reader.content_n);
	return f->file >= 0 && fd_write(f->file, f->reader.content, f->reader.content_n) < 0
		     ? err_sys(e, errno, "write into the folder")
		     : 0;
}

/* Contents that are there already need not be kept. */
static int end_content(struct fetch *f, struct err *e)
{
	struct apply_item *it = &f->list->p[f->list->n - 1];
	const struct tar_entry *t = &f->reader.entry;
	const struct timespec time = { .tv_sec = t->mtime, .tv_nsec = t->mtime_ns };
	int failed;

	hash_end(f->a->hash, it->is.hash);
	if (f->file < 0)
		return 0;
	apply_fetch_look(f, it);
	failed = apply_same(&it->is, &it->here)
		       ? unlinkat(f->a->stage, apply_number(it->n).text, 0)
		       : fchmod(f->file, it->is.mode) < 0 ||
				 futimens(f->file, (const struct timespec[]){ time, time }) < 0 ||
				 fsync(f->file) < 0;
	if (failed)
		err_sys(e, errno, "write into the folder");
	close_fd(&f->file);
	return failed ? -1 : 0;
}

static int fetch_take(void *arg, struct str bytes, struct err *e)
{
	struct fetch *f = arg;
	int result = 0;

	while (result == 0) {
		switch (tar_read(&f->reader, &bytes.p, &bytes.n)) {
		case TAR_MORE:
			return 0;
		case TAR_ENTRY:
			result = take_entry(f, e);
			break;
		case TAR_CONTENT:
			result = take_content(f, e);
			break;
		case TAR_ENTRY_END:
			result = end_content(f, e);
			break;
		case TAR_END:
			f->ended = true;
			break;
		case TAR_PASSED:
		case TAR_BAD:
			return err_set(e, ERR_TRANSPORT, "the hub's archive: %s",
				       tar_why_text(f->reader.why));
		}
	}
	return result;
}

int apply_fetch(struct apply *a, struct hub_link *l, const struct apply_revision *r, bool staged,
		struct apply_list *ret, struct err *e)
{
	struct fetch f = { .a = a, .list = ret, .staged = staged, .file = -1 };
	char path[WS_PATH_MAX], none[HASH_HEX + 1];
	int result;

	tar_reader_init(&f.reader);
	if (ws_export_path(path, r->workspace, r->id, false, e) < 0)
		return -1;
	result = hub_link_download(l, path, fetch_take, &f, e);
	close_fd(&f.file);
	hash_end(a->hash, none); /* of what was cut */
	if (result < 0)
		return -1;
	if (!f.ended)
		return err_set(e, ERR_TRANSPORT, "the hub's archive has no end");
	if (ret->n)
		qsort(ret->p, ret->n, sizeof(*ret->p), item_order);
	for (size_t i = 1; i < ret->n; i++) {
		if (strcmp(ret->p[i - 1].path, ret->p[i].path) == 0)
			return err_set(e, ERR_TRANSPORT, "the hub's archive names a path twice");
	}
	return 0;
}
