#include "cli/common/tty.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

static struct termios before; /* good once raw was set */
static volatile sig_atomic_t raw;

bool tty_size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
			*ret_columns = size.ws_col;
			*ret_rows = size.ws_row;
			return true;
		}
	}
	return false;
}

void tty_restore(void)
{
	if (raw)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	raw = 0;
}

/* The handler is gone when this runs, so the signal does what it would have done. */
static void on_fatal(int number)
{
	tty_restore();
	raise(number);
}

/* All that would end us and can be caught; those that somebody has us ignore stay ignored. */
static void catch_ends(void)
{
	static const int fatal[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGILL,	 SIGTRAP, SIGABRT,
				     SIGBUS,  SIGFPE,  SIGSEGV, SIGPIPE, SIGALRM, SIGTERM,
				     SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ };
	struct sigaction old,
		a = { .sa_handler = on_fatal, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };

	for (size_t i = 0; i < ARRAY_LEN(fatal); i++) {
		if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(fatal[i], &a, NULL);
	}
}

static int keep_mode(struct err *e)
{
	if (raw)
		return 0;
	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return err_sys(e, errno, "the terminal");
	atexit(tty_restore);
	catch_ends();
	raw = 1;
	return 0;
}

int tty_read_secret(const char *prompt, struct buf *to, struct err *e)
{
	bool typed = isatty(STDIN_FILENO);
	char *room = buf_reserve(to, to->max - to->n, e);
	struct termios silent;
	ssize_t n = 1;
	int why;

	if (!room || (typed && keep_mode(e) < 0))
		return -1;
	if (typed) {
		silent = before;
		silent.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent); /* what was typed before is dropped */
		fputs(prompt, stderr);
	}
	while (n != 0 && to->n < to->max && !(typed && to->n > 0 && to->p[to->n - 1] == '\n')) {
		n = read(STDIN_FILENO, to->p + to->n, to->max - to->n);
		if (n < 0 && errno != EINTR)
			break;
		buf_advance(to, n > 0 ? (size_t)n : 0);
	}
	why = errno;
	if (typed) {
		tty_restore();
		fputc('\n', stderr);
		while (to->n > 0 && to->p[to->n - 1] == '\n')
			to->n--;
	}
	return n < 0 ? err_sys(e, why, "standard input") : 0;
}

int tty_raw(struct err *e)
{
	struct termios t;

	if (!isatty(STDIN_FILENO))
		return 0;
	if (keep_mode(e) < 0)
		return -1;
	t = before;
	cfmakeraw(&t);
	return tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0 ? err_sys(e, errno, "the terminal") : 0;
}
