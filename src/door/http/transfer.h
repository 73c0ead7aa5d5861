#pragma once
/*
 * Trees of files between a sandbox and a client, as tar archives that nobody ever holds whole: who takes slowly
 * is waited for, on either side, and who goes away ends it.
 */
#include "door/http/body_pipe.h"

/* Sends the archive of a path piece by piece, and STR_NONE behind the last one. The answer is a stream from the first
 * piece on; a failure before that is one of the request, and after it the stream has no end. Ends the call. */
void transfer_download(struct call *c, struct sandbox *sb, struct str path,
		       void (*send)(struct call *c, struct str bytes));

struct transfer_upload { /* part of something whose memory is the call's */
	struct call *call;
	struct body_pipe pipe; /* where the archive goes; its owner puts it there */
	struct file_transfer *transfer; /* NULL once it has ended */
	void (*on_done)(struct transfer_upload *u, const struct err *e);
};

/* Unpacks what comes through the pipe in a directory. on_done tells later how it went, once, also before the archive
 * has ended. */
int transfer_upload_start(struct transfer_upload *u, struct call *c, struct sandbox *sb,
			  struct str path,
			  void (*on_done)(struct transfer_upload *u, const struct err *e),
			  struct err *e) MUST_USE;

/* Ends it, where it has not ended: on_done is not called. */
void transfer_upload_stop(struct transfer_upload *u);
