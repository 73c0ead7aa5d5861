/*
 * The load of bench/rest/run: load MODE ARG... Each mode prints lines of a name and a number; times
 * are in microseconds, and every sample has a line. `peer` is a name of bench/peers.c.
 *
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "bench.h"
#include "wire.h"

enum { LANES_MAX = 64, IDLE_MAX = 1024, SETTLE_US = 30000, STALL_MS = 30000, ID_ROOM = 80 };

static const char create_body[] = "{\"template\":\"host\"}";

static void print(const char *what, double number)
{
	printf("%s\t%.3f\n", what, number);
}

static double number(const char *text, double least, double most)
{
	double n = strtod(text, NULL);

	if (!(n >= least && n <= most))
		die("a number that is out of range");
	return n;
}

static const struct peer *find_peer(const char *name)
{
	for (size_t i = 0; i < n_peers; i++) {
		if (strcmp(peers[i].name, name) == 0)
			return &peers[i];
	}
	die("no such peer");
}

/* ---- requests that are under way at the same time -------------------------------------------- */

struct lane {
	struct wire *w;
	char id[ID_ROOM]; /* of the sandbox that it has made */
	bool creating;
	double begun;
};

static struct lane lanes[LANES_MAX];

static size_t open_lanes(const char *wide)
{
	size_t n = (size_t)number(wide, 1, LANES_MAX);

	for (size_t i = 0; i < n; i++)
		lanes[i].w = wire_new();
	return n;
}

static void close_lanes(size_t n)
{
	for (size_t i = 0; i < n; i++)
		wire_free(lanes[i].w);
}

/* Until next() has said no to each of them: it is called with each answer, and asks again. */
static void run_lanes(size_t n, bool (*next)(struct lane *l, const char *answer))
{
	struct pollfd fds[LANES_MAX];
	size_t left = n;

	for (size_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ lanes[i].w->fd, POLLIN, 0 };
	while (left > 0) {
		if (poll(fds, n, STALL_MS) <= 0)
			die("the hub does not answer");
		for (size_t i = 0; i < n; i++) {
			if (fds[i].revents && !next(&lanes[i], wire_reply(lanes[i].w))) {
				fds[i].fd = -1;
				left--;
			}
		}
	}
}

static void ask_create(struct lane *l)
{
	l->creating = true;
	l->begun = now_us();
	wire_send(l->w, "POST", "/v1/sandboxes", create_body);
}

static void keep_id(struct lane *l, const char *answer)
{
	const char *id = strstr(answer, "\"id\":\"");

	if (!id || sscanf(id + 6, "%79[A-Za-z0-9_-]", l->id) != 1)
		die("an answer without an id");
}

static void ask_delete(struct lane *l)
{
	char path[ID_ROOM + 32];

	snprintf(path, sizeof(path), "/v1/sandboxes/%.*s", ID_ROOM - 1, l->id);
	l->creating = false;
	l->begun = now_us();
	wire_send(l->w, "DELETE", path, NULL);
}

static void ask_true(struct lane *l, const char *id)
{
	char body[ID_ROOM + 64];

	snprintf(body, sizeof(body), "{\"sandbox\":\"%s\",\"command\":\"true\",\"args\":[]}", id);
	l->begun = now_us();
	wire_send(l->w, "POST", "/v1/exec", body);
}

static void check_exit(const char *answer)
{
	if (!strstr(answer, "\"exit_code\":0,") && !strstr(answer, "\"exit_code\":0}"))
		die("a command in a sandbox failed");
}

/* ---- burst WIDE TIMES: creates at once, each ------------------------------------------------- */

static bool made_one(struct lane *l, const char *answer)
{
	keep_id(l, answer);
	print("burst", now_us() - l->begun);
	return false;
}

static void run_burst(char **args)
{
	size_t n = open_lanes(args[0]), times = (size_t)number(args[1], 1, 1000);

	while (times-- > 0) {
		usleep(10 * SETTLE_US);
		for (size_t i = 0; i < n; i++)
			ask_create(&lanes[i]);
		run_lanes(n, made_one);
		for (size_t i = 0; i < n; i++) {
			ask_delete(&lanes[i]);
			wire_reply(lanes[i].w);
		}
	}
	close_lanes(n);
}

/* ---- cycle WIDE SECONDS MOST: each lane makes a sandbox and ends it, again and again --------- */

static struct {
	double until;
	size_t asked, made, most;
	const char *sandbox;
} load;

static void begin(double seconds)
{
	load.until = now_us() + seconds * 1e6;
	load.made = 0;
}

static void print_rate(double begun)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	print("made", (double)load.made);
	print("seconds", (now_us() - begun) / 1e6);
	print("client", (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
				(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

static bool is_over(void)
{
	return load.made >= load.most || now_us() >= load.until;
}

static bool cycled(struct lane *l, const char *answer)
{
	double took = now_us() - l->begun;

	if (l->creating) {
		keep_id(l, answer);
		load.made++;
		print("create", took);
		ask_delete(l);
		return true;
	}
	print("delete", took);
	if (is_over())
		return false;
	ask_create(l);
	return true;
}

static void run_cycle(char **args)
{
	size_t n = open_lanes(args[0]);
	double begun = now_us();

	begin(number(args[1], 0, 3600));
	load.most = (size_t)number(args[2], 1, 1e9);
	for (size_t i = 0; i < n; i++)
		ask_create(&lanes[i]);
	run_lanes(n, cycled);
	print_rate(begun);
	close_lanes(n);
}

/* ---- make WIDE N: sandboxes, none of which is ended before all are made ---------------------- */

static char ids_made[IDLE_MAX][ID_ROOM];

static bool made_another(struct lane *l, const char *answer)
{
	keep_id(l, answer);
	memcpy(ids_made[load.made++], l->id, ID_ROOM);
	print("create", now_us() - l->begun);
	if (load.asked == load.most)
		return false;
	load.asked++;
	ask_create(l);
	return true;
}

static void run_make(char **args)
{
	size_t n = open_lanes(args[0]);
	double begun = now_us();

	begin(0);
	load.most = (size_t)number(args[1], (double)n, IDLE_MAX);
	for (load.asked = 0; load.asked < n; load.asked++)
		ask_create(&lanes[load.asked]);
	run_lanes(n, made_another);
	print_rate(begun);
	for (size_t i = 0; i < load.most; i++) {
		memcpy(lanes[0].id, ids_made[i], ID_ROOM);
		ask_delete(&lanes[0]);
		wire_reply(lanes[0].w);
	}
	close_lanes(n);
}

/* ---- exec WIDE SECONDS SANDBOX: commands in one sandbox -------------------------------------- */

static bool executed(struct lane *l, const char *answer)
{
	check_exit(answer);
	print("exec", now_us() - l->begun);
	load.made++;
	if (is_over())
		return false;
	ask_true(l, load.sandbox);
	return true;
}

static void run_exec(char **args)
{
	size_t n = open_lanes(args[0]);
	double begun = now_us();

	begin(number(args[1], 0, 3600));
	load.most = SIZE_MAX;
	load.sandbox = args[2];
	for (size_t i = 0; i < n; i++)
		ask_true(&lanes[i], load.sandbox);
	run_lanes(n, executed);
	print_rate(begun);
	close_lanes(n);
}

/* ---- spawn WIDE SECONDS PEER: the same without a hub ----------------------------------------- */

static void run_spawn(char **args)
{
	size_t wide = (size_t)number(args[0], 1, LANES_MAX), under_way = 0;
	const struct peer *p = find_peer(args[2]);
	double begun = now_us();

	begin(number(args[1], 0, 3600));
	load.most = SIZE_MAX;
	while (under_way > 0 || !is_over()) {
		int status = 1;

		for (; under_way < wide && !is_over(); under_way++) {
			if (start_peer(p->argv) < 0)
				die("no process");
		}
		if (under_way == 0)
			break; /* the time was over just then */
		if (wait(&status) < 0 || status != 0)
			die("a peer failed");
		under_way--;
		load.made++;
	}
	print_rate(begun);
}

/* ---- commands ROUNDS: a round of everything, one at a time ----------------------------------- */

static bool takes_part(
	size_t peer) /* crun wants a bundle (bench/run), and vfork is no more than fork */
{
	return strncmp(peers[peer].name, "crun", 4) != 0 &&
	       strncmp(peers[peer].name, "vfork", 5) != 0;
}

static void settle(void)
{
	usleep(SETTLE_US); /* the pool fills again off the road that is measured */
	wait_quiet();
}

static void command_round(struct lane *l)
{
	double begun;

	for (size_t i = 0; i < n_peers; i++) {
		if (!takes_part(i))
			continue;
		wait_quiet();
		begun = run_peer(peers[i].argv, false);
		if (begun >= 0)
			print(peers[i].name, begun);
	}
	settle();
	ask_create(l);
	begun = l->begun;
	keep_id(l, wire_reply(l->w));
	print("create", now_us() - begun);
	ask_true(l, l->id);
	check_exit(wire_reply(l->w));
	print("first", now_us() - begun);
	ask_true(l, l->id);
	check_exit(wire_reply(l->w));
	print("exec", now_us() - l->begun);
	ask_delete(l);
	wire_reply(l->w);
	print("delete", now_us() - l->begun);
}

static void run_commands(char **args)
{
	size_t rounds = (size_t)number(args[0], 1, 1e6);

	open_lanes("1");
	while (rounds-- > 0)
		command_round(&lanes[0]);
	close_lanes(1);
}

/* ---- transfer TIMES METHOD PATH TYPE FILE: bytes up, down or both; FILE "-": none ------------ */

static void run_transfer(char **args)
{
	size_t times = (size_t)number(args[0], 1, 1e6);
	int fd = strcmp(args[4], "-") == 0 ? -1 : open(args[4], O_RDONLY | O_CLOEXEC);
	struct wire *w = wire_new();

	while (times-- > 0) {
		double begun = now_us();
		uint64_t n;

		if (fd >= 0)
			wire_send_file(w, args[1], args[2], args[3], fd);
		else
			wire_send(w, args[1], args[2], NULL);
		n = wire_drain(w);
		print("transfer", now_us() - begun);
		print("bytes", (double)n);
	}
	wire_free(w);
}

/* ---- over a WebSocket ------------------------------------------------------------------------ */

static void open_talk(struct wire *w, const char *sandbox, const char *message)
{
	char path[ID_ROOM + 64];

	snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", sandbox);
	ws_open(w, path, "holt.exec.v1");
	ws_say(w, WS_TEXT, message, strlen(message));
}

/* output SANDBOX TIMES COMMAND: all that it prints, as it is */
static void run_output(char **args)
{
	char message[512];
	size_t times = (size_t)number(args[1], 1, 1000);

	snprintf(message, sizeof(message), "{\"open\":{\"command\":\"%s\",\"stdin\":false}}",
		 args[2]);
	while (times-- > 0) {
		struct wire *w = wire_new();
		double begun = now_us(), n = 0;
		struct ws_frame f;

		open_talk(w, args[0], message);
		while ((f = ws_hear(w)).opcode == WS_BINARY)
			n += (double)f.n - 1;
		if (f.opcode != WS_TEXT || f.n < 8 || memcmp(f.p, "{\"exit\":", 8) != 0)
			die("a command over a WebSocket failed");
		print("transfer", now_us() - begun);
		print("bytes", n);
		wire_free(w);
	}
}

/* Gives each key back without a line discipline's help: a round trip ends in the program. */
#define ECHO_COMMAND "stty raw -echo && printf R && exec cat"

static void await_key(struct wire *w, char key)
{
	struct ws_frame f = ws_hear(w);

	if (f.opcode != WS_BINARY || f.n != 2 || f.p[1] != key)
		die("a terminal in a sandbox says something else");
}

static int open_local(pid_t *ret_pid)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };
	int fd;
	char key;

	*ret_pid = forkpty(&fd, NULL, NULL, &size);
	if (*ret_pid < 0)
		die("no terminal");
	if (*ret_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c", ECHO_COMMAND, (char *)NULL);
		_exit(127);
	}
	if (read(fd, &key, 1) != 1 || key != 'R')
		die("a local terminal does not begin");
	return fd;
}

/* terminal SANDBOX ROUNDS: a key there and back; beside it, on a terminal of this machine's own */
static void run_terminal(char **args)
{
	struct wire *w = wire_new();
	size_t rounds = (size_t)number(args[1], 1, 1e6);
	pid_t pid;
	int local = open_local(&pid);
	char key;

	open_talk(w, args[0],
		  "{\"open\":{\"command\":\"" ECHO_COMMAND
		  "\",\"tty\":{\"cols\":80,\"rows\":24}}}");
	await_key(w, 'R');
	while (rounds-- > 0) {
		double begun = now_us();

		if (write(local, "k", 1) != 1 || read(local, &key, 1) != 1)
			die("a local terminal has ended");
		print("local", now_us() - begun);
		begun = now_us();
		ws_say(w, WS_BINARY, "\0k", 2);
		await_key(w, 'k');
		print("terminal", now_us() - begun);
	}
	close(local);
	waitpid(pid, NULL, 0);
	wire_free(w);
}

/* ---- idle PEER N: until standard input ends -------------------------------------------------- */

static void run_idle(char **args)
{
	const struct peer *p = find_peer(args[0]);
	size_t n = (size_t)number(args[1], 1, IDLE_MAX);
	int pids[IDLE_MAX];
	char byte;

	for (size_t i = 0; i < n; i++)
		pids[i] = start_peer(p->idle);
	print("started", (double)n);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (size_t i = 0; i < n; i++)
		stop_peer(pids[i]);
}

/* -------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int n_args;
	void (*run)(char **args);
} modes[] = {
	{ "burst", 2, run_burst },	 { "cycle", 3, run_cycle },
	{ "make", 2, run_make },	 { "exec", 3, run_exec },
	{ "spawn", 3, run_spawn },	 { "commands", 1, run_commands },
	{ "transfer", 5, run_transfer }, { "output", 3, run_output },
	{ "terminal", 2, run_terminal }, { "idle", 2, run_idle },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (argc > 1 && strcmp(argv[1], modes[i].name) == 0 &&
		    argc - 2 == modes[i].n_args) {
			modes[i].run(argv + 2);
			return 0;
		}
	}
	die("usage: load MODE ARG..., as at the top of each part of load.c");
}
