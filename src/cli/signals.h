#pragma once
/*
 * SIGINT, SIGTERM and SIGHUP as bytes of a pipe, so that a loop can watch them and a blocking write
 * can be woken by them. SIGPIPE is ignored: a reader that is gone is an error of write(2).
 */
#include "base/err.h"

/* Installs the handlers. The descriptor to watch, for the life of the process. */
int signals_open(struct err *e) MUST_USE;

/* The next signal that came, 0 for none. Never blocks. */
int signals_take(int fd);
