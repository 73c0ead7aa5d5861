#include "hub/image/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"

int image_make_folder(int dir, const char *name, mode_t mode, struct err *e)
{
	autoclose int fd = -1;

	if (mkdirat(dir, name, 0700) < 0)
		return err_sys(e, errno, "make a folder for the image");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_sys(e, errno, "make a folder for the image");
	return take_fd(&fd);
}

/* Created under the store's lock, so a sweeper finds it locked or not at all. */
int image_make_start(struct image_make *m, struct images *s, const struct tree_limits *limits,
		     struct err *e)
{
	autoclose int lock = -1;
	uint32_t swept = 0;

	m->s = s;
	m->dir = m->root = -1;
	m->limits = *limits;
	if (!m->limits.bytes)
		m->limits.bytes = IMAGE_LIMITS.bytes;
	if (!m->limits.entries)
		m->limits.entries = IMAGE_LIMITS.entries;
	id_make(m->id, "new");
	lock = images_lock(s, e);
	if (lock < 0 || images_sweep(s, &swept, e) < 0)
		return -1;
	m->dir = image_make_folder(s->new, m->id, 0700, e);
	if (m->dir < 0)
		return -1;
	if (flock(m->dir, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, errno, "lock the folder for the image");
	m->root = image_make_folder(m->dir, "root", 0755, e);
	return m->root < 0 ? -1 : 0;
}

void image_make_end(struct image_make *m)
{
	close_fd(&m->root);
	if (m->dir >= 0)
		tree_remove(m->s->new, m->id); /* what could not be removed, prune does */
	close_fd(&m->dir);
}

static int write_record(struct image_make *m, struct err *e)
{
	autofree char *text = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	m->record.digest = str_of(m->digest);
	m->record.created_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	m->record.bytes = m->count.bytes;
	m->record.entries = m->count.entries;
	m->record.user = str_of(m->user.name);
	m->record.home = str_of(m->user.home);
	text = field_encode_text(&image_record_table, &m->record, IMAGE_DOC_MAX, e);
	if (!text || images_write(m->dir, "image.json", str_of(text), e) < 0)
		return -1;
	return syncfs(m->root) < 0 ? err_sys(e, errno, "write the image through to the disk") : 0;
}

/* Moves it back into new/ for removal, unless a sandbox uses it already. */
static void make_withdraw(struct image_make *m)
{
	if (flock(m->dir, LOCK_EX | LOCK_NB) < 0 ||
	    renameat(m->s->image, m->digest, m->s->new, m->id) < 0)
		close_fd(&m->dir);
}

int image_make_publish(struct image_make *m, const char *name, struct err *e)
{
	autoclose int lock = -1;
	int rc;

	if (write_record(m, e) < 0)
		return -1;
	lock = images_lock(m->s, e);
	if (lock < 0)
		return -1;
	if (renameat2(m->s->new, m->id, m->s->image, m->digest, RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? images_set_name(m->s, str_of(name), str_of(m->digest), e)
				       : err_sys(e, errno, "put the image into the store");
	flock(m->dir, LOCK_UN); /* sandboxes can use it from now on */
	rc = fsync(m->s->image) < 0 ? err_sys(e, errno, "write the image through to the disk")
				    : images_set_name(m->s, str_of(name), str_of(m->digest), e);
	if (rc == 0)
		close_fd(&m->dir); /* it is no more in new/ */
	else
		make_withdraw(m);
	return rc;
}

void images_retell(struct err *e)
{
	static const struct {
		enum err_code from, to;
	} rows[] = {
		{ ERR_PATH_NOT_FOUND, ERR_INVALID }, { ERR_PATH_DENIED, ERR_INVALID },
		{ ERR_NOT_A_FILE, ERR_INVALID },     { ERR_TOO_LARGE, ERR_IMAGE_LARGE },
		{ ERR_DISK_FULL, ERR_IMAGE_DISK },   { ERR_STORE_FULL, ERR_IMAGE_DISK },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (e->code == rows[i].from) {
			e->code = rows[i].to;
			return;
		}
	}
}
