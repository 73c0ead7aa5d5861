#pragma once
/*
 * A tree of files from a client into a sandbox, as a tar archive that nobody ever holds whole: a
 * sandbox that takes slowly is waited for, and a client that goes away ends it.
 */
#include "door/http/body_pipe.h"

struct transfer_upload { /* part of something whose memory is the call's */
	struct call *call;
	struct body_pipe pipe; /* where the archive goes; its owner puts it there */
	struct file_transfer *transfer; /* NULL once it has ended */
	void (*on_done)(struct transfer_upload *u, const struct err *e);
};

/* Unpacks what comes through the pipe into a directory. on_done is called later, once, with the
 * result; it may come before the end of the archive. */
int transfer_upload_start(struct transfer_upload *u, struct call *c, struct sandbox *sb,
			  struct str path,
			  void (*on_done)(struct transfer_upload *u, const struct err *e),
			  struct err *e) MUST_USE;

/* Ends it, where it has not ended: on_done is not called. */
void transfer_upload_stop(struct transfer_upload *u);
