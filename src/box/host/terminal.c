/*
 * Terminals. Each sandbox has its own devpts. Init shows the hub that directory, and the hub opens
 * both ends: a master that init opened would be one open file of both, and a hijacked init could
 * make the hub block. The program gets the other end as its streams and controlling terminal; the
 * kernel hangs it up when the hub closes its end.
 */
#include "box/host/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <termios.h>
#include <unistd.h>

enum { SIDE_MAX = 9999, CTRL_D = 4 };

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

struct terminal_call {
	struct init_call call; /* first: the two are cast */
	struct winsize size;
	terminal_cb *on_done; /* NULL: cancelled */
	void *arg;
};

static struct winsize size_of(unsigned columns, unsigned rows)
{
	return (struct winsize){ .ws_col = (unsigned short)columns,
				 .ws_row = (unsigned short)rows };
}

int terminal_check(unsigned columns, unsigned rows, struct err *e)
{
	if (columns < 1 || rows < 1 || columns > SIDE_MAX || rows > SIDE_MAX)
		return err_set(e, ERR_INVALID,
			       "a terminal has 1 to %d columns and rows, not %u by %u", SIDE_MAX,
			       columns, rows);
	return 0;
}

int terminal_resize(int master, unsigned columns, unsigned rows, struct err *e)
{
	const struct winsize size = size_of(columns, rows);

	return ioctl(master, TIOCSWINSZ, &size) < 0 ? err_sys(e, errno, "the terminal's size") : 0;
}

char terminal_end_of_file(int master)
{
	struct termios t = { .c_lflag = ICANON, .c_cc = { [VEOF] = CTRL_D } };

	if ((master >= 0 && tcgetattr(master, &t) < 0) || !(t.c_lflag & ICANON))
		return 0;
	return (char)t.c_cc[VEOF];
}

/* Checks the directory, since init is hostile: only in a devpts does nobody but the kernel make
 * files. */
static bool holds_terminals(int dir)
{
	struct statfs fs;
	struct stat st;

	return dir >= 0 && fstatfs(dir, &fs) == 0 && fs.f_type == DEVPTS_SUPER_MAGIC &&
	       fstat(dir, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Text is UTF-8 (the locale of all programs), so the erase key removes one character. */
static int set_up(int master, int slave, const struct winsize *size)
{
	struct termios t;

	if (tcgetattr(slave, &t) < 0)
		return -1;
	t.c_iflag |= IUTF8;
	return tcsetattr(slave, TCSANOW, &t) < 0 ? -1 : ioctl(master, TIOCSWINSZ, size);
}

static int open_pair(int dir, const struct winsize *size, int *ret_master, int *ret_slave,
		     struct err *e)
{
	autoclose int master = -1;
	autoclose int slave = -1;
	int unlocked = 0;

	if (!holds_terminals(dir))
		return err_set(e, ERR_GUEST, "the sandbox has no terminals");
	master = openat(dir, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (master < 0 && errno == ENOSPC)
		return err_set(e, ERR_LIMIT, "the sandbox has all of its %d terminals in use",
			       TERMINALS_MAX);
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return err_sys(e, errno, "open a terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || set_up(master, slave, size) < 0)
		return err_sys(e, errno, "open a terminal");
	*ret_master = take_fd(&master);
	*ret_slave = take_fd(&slave);
	return 0;
}

static void on_reply(struct init_call *call, const void *answer, size_t n, int fd,
		     const struct err *err)
{
	struct terminal_call *c = (struct terminal_call *)call;
	const struct im_terminal_done *d = answer;
	autoclose int dir = fd;
	int master = -1, slave = -1;
	struct err e = ERR_INIT;

	if (err)
		e = *err;
	else if (d->errnum)
		err_sys(&e, d->errnum, "the terminals of sandbox %s", call->sb->id);
	else if (dir < 0)
		init_call_no_fd(call, &e);
	else if (c->on_done)
		open_pair(dir, &c->size, &master, &slave, &e);
	if (c->on_done)
		c->on_done(c->arg, master, slave, master < 0 ? &e : NULL);
	sandbox_unref(call->sb);
	free(c);
}

struct terminal_call *terminal_open_start(struct sandbox *sb, const struct exec_terminal *t,
					  terminal_cb *on_done, void *arg, struct err *e)
{
	struct im_head m = { .type = IM_TERMINAL };
	struct terminal_call *c;

	if (terminal_check(t->columns, t->rows, e) < 0)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	c->call = (struct init_call){ .sb = sandbox_ref(sb),
				      .answer = IM_TERMINAL_DONE,
				      .answer_size = sizeof(struct im_terminal_done),
				      .on_reply = on_reply };
	c->size = size_of(t->columns, t->rows);
	c->on_done = on_done;
	c->arg = arg;
	if (init_call_send(&c->call, &m, sizeof(m), e) == 0)
		return c;
	sandbox_unref(sb);
	free(c);
	return NULL;
}

void terminal_open_resize(struct terminal_call *c, unsigned columns, unsigned rows)
{
	c->size = size_of(columns, rows);
}

void terminal_open_cancel(struct terminal_call *c)
{
	if (c)
		c->on_done = NULL;
}
