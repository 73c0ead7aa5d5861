/*
 * Caches the result of each build step (hub/image/cache.h). The next build starts from the result
 * of the last step that has not changed. A result is the sandbox's changes as one archive: written
 * as for a snapshot, and unpacked by the sandbox's init. The cache never fails a build: a result
 * that can't be stored is skipped, and if one can't be restored, the build starts again without the
 * cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/build/internal.h"
#include "cli/common/safe.h"

enum { QUEUE_MAX = 1 << 20, PIECE = 128 * 1024 };

/* ---- putting back ---------------------------------------------------------------------------- */

static void close_out(struct steps *s)
{
	if (s->back.out)
		loop_writer_close(take_ptr(s->back.out), NULL);
}

/* Sends as much as the queue accepts. The pipe is closed after the whole file is written. */
static void feed(struct steps *s)
{
	char piece[PIECE];

	/* Written bytes also occupy the queue until they are half of it. */
	while (s->back.left > 0 && loop_writer_queued(s->back.out) + PIECE <= QUEUE_MAX / 2) {
		size_t most = s->back.left < PIECE ? (size_t)s->back.left : PIECE;

		if (fd_read(s->back.file, piece, most) < 0) {
			close_out(s); /* The archive ends early, and the reader notices. */
			return;
		}
		s->back.left -= most;
		loop_writer_put(s->back.out, (struct str){ piece, most });
	}
	if (s->back.left == 0 && loop_writer_queued(s->back.out) == 0)
		close_out(s);
}

static void on_fed(void *owner)
{
	feed(owner);
}

/* Why is told by whoever does not read on. */
static void on_broken(void *owner, const struct err *e)
{
	close_out(owner);
}

static void on_put_back(void *arg, const struct err *err)
{
	struct steps *s = arg;

	s->transfer = NULL;
	close_out(s);
	close_fd(&s->back.file);
	if (err) {
		/* The digest matched, so the likely cause is a limit of this build. */
		build_cache_forget(s->of->cache, s->back.done);
		steps_anew(s);
		return;
	}
	for (size_t i = 0; i < s->back.done; i++) {
		fprintf(stderr, "step %zu of %zu, kept: ", i + 1, s->of->spec->run.n);
		safe_puts(stderr, s->of->spec->run.p[i]);
	}
	s->at = s->back.done;
	steps_next(s);
}

static int start_putting(struct steps *s)
{
	static const struct loop_writer_events events = { on_fed, on_broken };
	const struct file_upload_opts opts = { .changes = true };
	struct err ignored = ERR_INIT;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	s->back.out = loop_writer_new(&s->loop, ends[1], QUEUE_MAX, &events, s, &ignored);
	if (!s->back.out) {
		close(ends[0]);
		return -1;
	}
	s->transfer = file_upload_start(s->sandbox, STR_LIT("/"), &opts, ends[0], on_put_back, s);
	feed(s);
	return 0;
}

void steps_restore(struct steps *s)
{
	if (s->back.file >= 0 && start_putting(s) == 0)
		return;
	close_fd(&s->back.file);
	steps_next(s);
}

/* ---- keeping --------------------------------------------------------------------------------- */

static void keep_settle(struct steps *s)
{
	if (s->keep.writing || s->in)
		return;
	if (s->keep.failed)
		build_kept_drop(take_ptr(s->keep.file));
	else
		build_kept_publish(take_ptr(s->keep.file), s->at);
	s->at++;
	steps_next(s);
}

static void stop_taking(struct steps *s, bool failed)
{
	s->keep.failed |= failed;
	loop_reader_close(take_ptr(s->in), NULL);
}

static void on_piece(void *owner, struct str bytes)
{
	struct steps *s = owner;

	if (build_kept_add(s->keep.file, bytes.p, bytes.n)) {
		loop_reader_next(s->in);
		return;
	}
	stop_taking(s, true);
	keep_settle(s);
}

static void on_piece_end(void *owner, const struct err *e)
{
	stop_taking(owner, e != NULL);
	keep_settle(owner);
}

static void on_written(void *arg, struct sandbox *sb, const struct err *err)
{
	struct steps *s = arg;

	s->keep.writing = false;
	s->keep.failed |= err != NULL;
	if (!s->ending)
		keep_settle(s);
}

static int start_taking(struct steps *s)
{
	static const struct loop_reader_events events = { on_piece, on_piece_end };
	struct err ignored = ERR_INIT;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	s->in = loop_reader_new(&s->loop, ends[0], &events, s, &ignored);
	if (!s->in) {
		close(ends[1]);
		return -1;
	}
	s->keep.writing = true;
	s->keep.failed = false;
	sandbox_write_start(s->sandbox, SANDBOX_WRITE_TAR, ends[1], on_written, s);
	loop_reader_next(s->in);
	return 0;
}

void steps_keep(struct steps *s)
{
	s->keep.file = build_kept_new(s->of->cache);
	if (s->keep.file && start_taking(s) == 0)
		return;
	build_kept_drop(take_ptr(s->keep.file));
	s->at++;
	steps_next(s);
}

void steps_keep_stop(struct steps *s)
{
	close_out(s);
	close_fd(&s->back.file);
	if (s->keep.file)
		build_kept_drop(take_ptr(s->keep.file));
}
