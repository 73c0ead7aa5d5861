/*
 * A revision of a tar archive that comes from a client, maybe slowly. First it goes into a file
 * without a name, so that nobody waits for the client, then its entries become objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hub/workspace/internal.h"
#include "loop/reader.h"

/* With the headers of all files. */
#define IMPORT_MAX (WORKSPACE_BYTES_MAX + WORKSPACE_FILES_MAX * 16ull * 1024)
#define SPOOL "import" /* its name for a moment, where a file must have one */

struct importing {
	struct workspace *w; /* busy */
	char message[REVISION_MESSAGE_MAX + 1];
	const struct err *failed; /* by who sends */
	struct loop_reader *reader;
	int file;
	uint64_t bytes;
	struct str piece; /* of what was read: what is not written yet */
	uv_fs_t write;
	workspace_commit_cb on_done;
	void *arg;
};

static void import_end(struct importing *m, const struct err *err)
{
	struct workspaces *all = m->w->all;
	struct err e = ERR_INIT;

	if (m->reader)
		loop_reader_close(m->reader, NULL);
	if (err)
		e = *err;
	else if (m->failed->code)
		e = *m->failed;
	else if (lseek(m->file, 0, SEEK_SET) < 0)
		err_sys(&e, errno, "read the archive");
	commit_import_start(m->w, m->file, str_of(m->message), e.code ? &e : NULL, m->on_done,
			    m->arg);
	all->imports--;
	m->w->busy--;
	free(m);
}

static void import_write(struct importing *m);

static void import_on_written(uv_fs_t *req)
{
	struct importing *m = req->data;
	ssize_t n = req->result;
	struct err e = ERR_INIT;

	uv_fs_req_cleanup(req);
	if (n <= 0) {
		err_sys(&e, n < 0 ? (int)-n : EIO, "keep the archive");
		import_end(m, &e);
		return;
	}
	m->piece.p += n;
	m->piece.n -= (size_t)n;
	if (m->piece.n)
		import_write(m);
	else
		loop_reader_next(m->reader);
}

static void import_write(struct importing *m)
{
	uv_buf_t b = uv_buf_init((char *)m->piece.p, (unsigned)m->piece.n);

	m->write.data = m;
	if (uv_fs_write(m->w->all->loop, &m->write, m->file, &b, 1, -1, import_on_written) < 0)
		abort();
}

static void import_on_bytes(void *owner, struct str bytes)
{
	struct importing *m = owner;
	struct err e = ERR_INIT;

	m->bytes += bytes.n;
	m->piece = bytes;
	if (m->bytes > IMPORT_MAX) {
		err_set(&e, ERR_WORKSPACE_LARGE, "the archive is too large");
		import_end(m, &e);
	} else {
		import_write(m);
	}
}

static void import_on_end(void *owner, const struct err *err)
{
	import_end(owner, err);
}

static int open_spool(int dir, struct err *e)
{
	autoclose int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0) {
		fd = openat(dir, SPOOL, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || unlinkat(dir, SPOOL, 0) < 0)
			return err_sys(e, errno, "make a file for the archive");
	}
	return take_fd(&fd);
}

void workspace_import_start(struct workspace *w, int fd, struct str message,
			    const struct err *failed, workspace_commit_cb on_done, void *arg)
{
	static const struct loop_reader_events events = { import_on_bytes, import_on_end };
	struct importing *m = calloc(1, sizeof(*m));
	struct err e = ERR_INIT;

	if (!m)
		abort(); /* out of memory: no callback could report it */
	*m = (struct importing){
		.w = w, .failed = failed, .file = -1, .on_done = on_done, .arg = arg
	};
	snprintf(m->message, sizeof(m->message), "%.*s", STR_ARG(message));
	w->busy++;
	w->all->imports++;
	m->reader = loop_reader_new(w->all->loop, fd, &events, m, &e);
	if (m->reader)
		m->file = open_spool(w->all->dir, &e);
	if (m->file >= 0)
		loop_reader_next(m->reader);
	else
		import_end(m, &e);
}
