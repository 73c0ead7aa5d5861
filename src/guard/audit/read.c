#include "guard/audit/read.h"

#include <fcntl.h>

#include "base/folder.h"
#include "guard/audit/log.h"

enum { ROOM = 64 << 10 };

struct audit_reader {
	int fd;
	uint64_t at; /* offset of room[from] in the file */
	size_t from, n; /* what was read and not yet given */
	struct json_doc *doc;
	struct arena arena;
	char room[ROOM];
};

struct audit_reader *audit_reader_new(int fd, uint64_t from, struct err *e)
{
	struct audit_reader *r = malloc(sizeof(*r));

	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	r->fd = fd;
	r->at = from;
	r->from = r->n = 0;
	r->doc = NULL;
	arena_init(&r->arena, 1 << 16);
	return r;
}

void audit_reader_free(struct audit_reader *r)
{
	if (!r)
		return;
	json_free(r->doc);
	arena_fini(&r->arena);
	free(r);
}

uint64_t audit_reader_at(const struct audit_reader *r)
{
	return r->at;
}

/* More bytes behind those that wait. 0: the file has no more. */
static ssize_t reader_fill(struct audit_reader *r, struct err *e)
{
	ssize_t got;

	memmove(r->room, r->room + r->from, r->n);
	r->from = 0;
	got = pread(r->fd, r->room + r->n, ROOM - r->n, (off_t)(r->at + r->n));
	if (got < 0)
		return err_sys(e, errno, "read the audit log");
	r->n += (size_t)got;
	return got;
}

int audit_reader_next(struct audit_reader *r, struct str *ret_line, struct audit_record *ret,
		      struct err *e)
{
	const char *end;

	while (!(end = memchr(r->room + r->from, '\n', r->n))) {
		ssize_t got;

		if (r->n > AUDIT_LINE_MAX)
			return err_set(e, ERR_INVALID, "a line is too long");
		got = reader_fill(r, e);
		if (got <= 0)
			return (int)got;
	}
	*ret_line = (struct str){ r->room + r->from, (size_t)(end - r->room) - r->from };
	if (ret_line->n > AUDIT_LINE_MAX)
		return err_set(e, ERR_INVALID, "a line is too long");
	json_free(r->doc);
	r->doc = audit_decode(*ret_line, &r->arena, ret, e);
	if (!r->doc)
		return -1;
	r->from += ret_line->n + 1;
	r->n -= ret_line->n + 1;
	r->at += ret_line->n + 1;
	return 1;
}

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

ssize_t audit_files(int folder, unsigned **ret, struct err *e)
{
	autofolder struct folder f = folder_at(folder, ".");
	autofree unsigned *all = NULL;
	size_t n = 0, room = 0;
	int found;

	*ret = NULL;
	while ((found = folder_next(&f)) > 0) {
		unsigned file = audit_file_of(f.entry->d_name);

		if (file && n == room) {
			unsigned *more = reallocarray(all, room = room ? 2 * room : 64,
						      sizeof(*all));

			if (!more)
				return err_set(e, ERR_LIMIT, "out of memory");
			all = more;
		}
		if (file)
			all[n++] = file;
	}
	if (found < 0)
		return err_sys(e, f.errnum, "list the audit log");
	if (n)
		qsort(all, n, sizeof(*all), by_number);
	*ret = take_ptr(all);
	return (ssize_t)n;
}

struct json_doc *audit_first(int folder, unsigned file, struct arena *a, struct audit_record *ret,
			     struct err *e)
{
	char name[AUDIT_FILE_NAME], text[AUDIT_LINE_MAX + 1];
	autoclose int fd = -1;
	const char *end;
	ssize_t n;

	audit_file_name(file, name);
	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);
	end = n > 0 ? memchr(text, '\n', (size_t)n) : NULL;
	if (!end)
		return err_set(e, ERR_INVALID, "a file of the audit log has no first line"), NULL;
	return audit_decode((struct str){ text, (size_t)(end - text) }, a, ret, e);
}
