#include "agents/store/document.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/publish.h"

struct json_doc *document_read(int folder, const char *name, struct err *e)
{
	static const struct json_options options = { .bytes = DOCUMENT_MAX };
	autoclose int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	autobuf struct buf text = BUF_INIT(DOCUMENT_MAX);
	struct json_doc *doc;
	struct stat st;
	char *room;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %s", name), NULL;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(e, ERR_DENIED, "%s is not a file of this user", name), NULL;
	room = buf_reserve(&text, (size_t)st.st_size, e);
	if (!room || fd_read(fd, room, (size_t)st.st_size) < 0) {
		if (room)
			err_sys(e, errno ? errno : EIO, "read %s", name);
		return NULL;
	}
	buf_advance(&text, (size_t)st.st_size);
	doc = json_parse(buf_str(&text), &options, e);
	if (!doc) {
		e->code = e->code == ERR_LIMIT ? ERR_LIMIT : ERR_STORE_CORRUPT;
		err_wrap(e, "%s", name);
	}
	return doc;
}

static int document_failed(const char *name, struct err *e)
{
	if (errno == ENOSPC || errno == EDQUOT)
		return err_set(e, ERR_STORE_FULL, "there is no room on the disk for %s", name);
	return err_sys(e, errno, "write %s", name);
}

int document_write(int folder, const char *name, struct str text, struct err *e)
{
	char beside[64];
	autoclose int fd = -1;
	int rc;

	/* One process writes here, so one name serves; what a killed one left is written over. */
	snprintf(beside, sizeof(beside), ".new-%s", name);
	if (text.n > DOCUMENT_MAX)
		return err_set(e, ERR_TOO_LARGE, "%s would have more than %d bytes", name,
			       DOCUMENT_MAX);
	if (unlinkat(folder, beside, 0) < 0 && errno != ENOENT)
		return document_failed(name, e);
	fd = openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fd_write(fd, text.p, text.n) < 0 || fdatasync(fd) < 0) {
		document_failed(name, e);
		unlinkat(folder, beside, 0);
		return -1;
	}
	rc = publish(folder, beside, name);
	if (rc <= 0)
		return rc < 0 ? document_failed(name, e) : 0;
	err_sys(e, errno, "write %s", name);
	return err_unsure(e);
}
