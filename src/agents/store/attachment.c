#include "agents/store/attachment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/mem.h"
#include "base/publish.h"

enum { FILE_NAME_MAX = 256, SNIFFED = 12 };

#define FILE_PREFIX "f"
#define FILE_BESIDE ".new"

/* Raster images alone: an SVG is a program. */
static const struct {
	const char *type, *begin;
	size_t n, at;
} images[] = {
	{ "image/png", "\x89PNG\r\n\x1a\n", 8, 0 },
	{ "image/jpeg", "\xff\xd8\xff", 3, 0 },
	{ "image/gif", "GIF8", 4, 0 },
	{ "image/webp", "WEBP", 4, 8 },
};

void attachment_sniff(struct str begin, struct attachment *ret)
{
	ret->type = "application/octet-stream";
	ret->image = false;
	for (size_t i = 0; i < ARRAY_LEN(images); i++) {
		if (begin.n < images[i].at + images[i].n ||
		    memcmp(begin.p + images[i].at, images[i].begin, images[i].n) != 0 ||
		    (images[i].at && !str_starts(begin, "RIFF")))
			continue;
		ret->type = images[i].type;
		ret->image = true;
	}
}

void attachment_file(const struct attachment *a, char ret[FILE_NAME_MAX])
{
	snprintf(ret, FILE_NAME_MAX, "%s-%s", a->id, a->name);
}

/* The id and name of a file; false: it is none of these. */
static bool attachment_of_file(const char *file, struct attachment *ret)
{
	size_t n = strlen(file);

	if (strncmp(file, FILE_PREFIX "-", 2) != 0 || n <= ATTACHMENT_ID + 1 ||
	    n > ATTACHMENT_ID + 1 + ATTACHMENT_NAME_MAX || file[ATTACHMENT_ID] != '-')
		return false;
	memcpy(ret->id, file, ATTACHMENT_ID);
	ret->id[ATTACHMENT_ID] = '\0';
	memcpy(ret->name, file + ATTACHMENT_ID + 1, n - ATTACHMENT_ID);
	return true;
}

/* No path, and nothing hidden. */
static int attachment_name_check(struct str name, struct err *e)
{
	bool bad = name.n == 0 || name.n > ATTACHMENT_NAME_MAX || *name.p == '.';

	for (size_t i = 0; i < name.n && !bad; i++)
		bad = (unsigned char)name.p[i] < ' ' || name.p[i] == '/' || name.p[i] == '\x7f';
	return !bad ? 0
		    : err_set(e, ERR_INVALID,
			      "name: 1 to %d bytes, no slash or control character, no dot first",
			      ATTACHMENT_NAME_MAX);
}

int attachments_folder(int folder, struct err *e)
{
	int fd = -1;

	if (mkdirat(folder, ATTACHMENTS_FOLDER, 0700) == 0 || errno == EEXIST)
		fd = openat(folder, ATTACHMENTS_FOLDER,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 ? fd : err_sys(e, errno, "open the folder of attachments");
}

/* Opens one and finds what is in it. -1 with errno: it is none, or can't be read. */
static int attachment_open(int fd, const char *file, struct attachment *ret)
{
	autoclose int at = openat(fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char begin[SNIFFED];
	struct stat st;
	ssize_t n;

	errno = at < 0 ? errno : ENOENT;
	if (at < 0 || !attachment_of_file(file, ret) || fstat(at, &st) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_size > ATTACHMENT_MAX)
		return -1;
	n = pread(at, begin, sizeof(begin), 0);
	attachment_sniff((struct str){ begin, n > 0 ? (size_t)n : 0 }, ret);
	ret->size = (uint64_t)st.st_size;
	ret->added_ms = st.st_mtim.tv_sec * 1000ll + st.st_mtim.tv_nsec / 1000000;
	return take_fd(&at);
}

static int attachment_order(const void *a, const void *b)
{
	const struct attachment *x = a, *y = b;

	return x->added_ms != y->added_ms ? (x->added_ms < y->added_ms ? -1 : 1)
					  : strcmp(x->id, y->id);
}

/* Whether a file that could not be opened may be there all the same. */
static bool attachment_passes(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == EIO || errnum == ENOMEM ||
	       errnum == EINTR;
}

int attachments_list(int folder, struct attachment ret[ATTACHMENTS_MAX], struct err *e)
{
	int fd = attachments_folder(folder, e), n = 0, more = 0;
	autofolder struct folder f = folder_take(fd);
	struct attachment a;

	if (fd < 0)
		return -1;
	while (n < ATTACHMENTS_MAX && (more = folder_next(&f)) > 0) {
		int at = attachment_open(fd, f.entry->d_name, &ret[n]);

		if (at < 0 && attachment_of_file(f.entry->d_name, &a) && attachment_passes(errno))
			return err_sys(e, errno, "open a file of the conversation");
		if (at < 0)
			continue;
		close(at);
		n++;
	}
	if (more < 0)
		return err_sys(e, f.errnum, "list the attachments");
	qsort(ret, (size_t)n, sizeof(*ret), attachment_order);
	return n;
}

/* Whether another one of so many bytes has room. */
static int attachment_fits(int folder, size_t bytes, struct err *e)
{
	autofree struct attachment *all = calloc(ATTACHMENTS_MAX, sizeof(*all));
	int n = all ? attachments_list(folder, all, e) : err_set(e, ERR_LIMIT, "out of memory");
	uint64_t sum = bytes;

	for (int i = 0; i < n; i++)
		sum += all[i].size;
	if (n == ATTACHMENTS_MAX || (n >= 0 && sum > ATTACHMENTS_BYTES_MAX))
		return err_set(e, ERR_CONFLICT,
			       "the conversation has too many files: %d, or %d bytes, at most",
			       ATTACHMENTS_MAX, ATTACHMENTS_BYTES_MAX);
	return n < 0 ? -1 : 0;
}

static int attachment_write(int fd, const char *file, struct str bytes, struct err *e)
{
	autoclose int at = -1;
	int why, rc = -1;

	if (unlinkat(fd, FILE_BESIDE, 0) == 0 || errno == ENOENT)
		at = openat(fd, FILE_BESIDE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (at < 0 || fd_write(at, bytes.p, bytes.n) < 0 || fdatasync(at) < 0) {
		why = errno;
		unlinkat(fd, FILE_BESIDE, 0);
		errno = why;
	} else {
		rc = publish(fd, FILE_BESIDE, file);
	}
	if (rc == 0)
		return 0;
	why = errno;
	if (rc > 0) {
		err_sys(e, why, "write the file");
		return err_unsure(e);
	}
	return why == ENOSPC || why == EDQUOT
		     ? err_set(e, ERR_STORE_FULL, "there is no room on the disk for the file")
		     : err_sys(e, why, "write the file");
}

int attachment_add(int folder, struct str name, struct str bytes, struct attachment *ret,
		   struct err *e)
{
	struct attachment a = { .size = bytes.n };
	char file[FILE_NAME_MAX];
	autoclose int fd = -1;
	int at;

	if (attachment_name_check(name, e) < 0)
		return -1;
	if (bytes.n > ATTACHMENT_MAX)
		return err_set(e, ERR_TOO_LARGE, "a file has at most %d bytes", ATTACHMENT_MAX);
	if (attachment_fits(folder, bytes.n, e) < 0)
		return -1;
	id_make(a.id, FILE_PREFIX);
	memcpy(a.name, name.p, name.n);
	attachment_file(&a, file);
	fd = attachments_folder(folder, e);
	if (fd < 0 || attachment_write(fd, file, bytes, e) < 0)
		return -1;
	at = attachment_open(fd, file, ret);
	if (at < 0) {
		err_sys(e, errno, "read the file");
		return err_unsure(e); /* it is there */
	}
	close(at);
	return 0;
}

/* Finds the file of an id. */
static int attachment_find(int fd, struct str id, char ret[FILE_NAME_MAX], struct err *e)
{
	autofolder struct folder f = folder_at(fd, ".");
	struct attachment a;
	int more;

	while ((more = folder_next(&f)) > 0) {
		if (attachment_of_file(f.entry->d_name, &a) && str_is(id, a.id))
			break;
	}
	if (more < 0)
		return err_sys(e, f.errnum, "list the attachments");
	if (more > 0)
		snprintf(ret, FILE_NAME_MAX, "%s", f.entry->d_name);
	return more ? 0 : err_set(e, ERR_PATH_NOT_FOUND, "the conversation has no such file");
}

int attachment_read(int folder, struct str id, struct attachment *ret, struct buf *to,
		    struct err *e)
{
	autoclose int fd = attachments_folder(folder, e), at = -1;
	char file[FILE_NAME_MAX], *room;

	if (fd < 0 || attachment_find(fd, id, file, e) < 0)
		return -1;
	at = attachment_open(fd, file, ret);
	if (at < 0)
		return err_set(e, ERR_PATH_NOT_FOUND, "the conversation's file can't be opened");
	if (!to)
		return 0;
	room = buf_reserve(to, (size_t)ret->size, e);
	if (!room)
		return -1;
	if (fd_read(at, room, (size_t)ret->size) < 0)
		return err_sys(e, errno ? errno : EIO, "read the file");
	buf_advance(to, (size_t)ret->size);
	return 0;
}

int attachment_remove(int folder, struct str id, struct err *e)
{
	autoclose int fd = attachments_folder(folder, e);
	char file[FILE_NAME_MAX];

	if (fd < 0 || attachment_find(fd, id, file, e) < 0)
		return -1;
	if (unlinkat(fd, file, 0) < 0)
		return err_sys(e, errno, "remove the file");
	if (fsync(fd) == 0)
		return 0;
	err_sys(e, errno, "remove the file");
	return err_unsure(e);
}
