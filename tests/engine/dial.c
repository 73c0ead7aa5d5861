/* Connections to the ports of sandboxes: who is reached, whose network they are of, and what
 * becomes of them. */
#include "engine.h"

#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

enum { PORT = 8000, MANY = 100 };

struct dialed {
	bool done;
	int fd;
	struct err err;
};

static void on_done(void *arg, int fd, const struct err *err)
{
	struct dialed *d = arg;

	assert_false(d->done);
	d->done = true;
	d->fd = fd;
	d->err = err ? *err : ERR_INIT;
	assert_int_equal(fd < 0, err != NULL);
}

/* The connection, or -1 with why. */
static struct dialed dial_to(struct sandbox *sb, uint16_t port)
{
	struct dialed d = { .fd = -1 };

	sandbox_dial_start(sb, port, on_done, &d);
	assert_false(d.done); /* never from inside */
	wait_for(&d.done, "a connection");
	return d;
}

/* Listens at address:PORT and gives each client back what it says. */
static struct ran *serve(struct sandbox *sb, const char *address)
{
	char line[512];
	struct ran *r;

	snprintf(line, sizeof(line),
		 "exec python3 -c 'import socket, threading\n"
		 "s = socket.create_server((\"%s\", %d), backlog=128, family=socket.%s)\n"
		 "print(flush=True)\n"
		 "def one(c):\n"
		 " while d := c.recv(9): c.sendall(d)\n"
		 "while True: threading.Thread(target=one, args=s.accept()[:1], "
		 "daemon=True).start()'",
		 address, PORT, strchr(address, ':') ? "AF_INET6" : "AF_INET");
	r = ran_shell(sb, line);
	while (r->out.n == 0 && !r->done)
		wait_ms(10);
	return r;
}

static void echoes(int fd)
{
	char got[8] = "";
	ssize_t n = -1;

	assert_int_equal(send(fd, "hello", 5, MSG_NOSIGNAL), 5);
	for (int i = 0; i < 6000 && n < 0; i++) {
		n = recv(fd, got, sizeof(got), 0);
		if (n < 0)
			wait_ms(5);
	}
	assert_int_equal(n, 5);
	assert_memory_equal(got, "hello", 5);
}

static uint64_t network_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t n = sizeof(cookie);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &n), 0);
	return cookie;
}

static void test_a_server(void **state)
{
	struct sandbox *sb = make(NULL), *other = make(NULL);
	int own = socket(AF_INET, SOCK_STREAM, 0);
	struct dialed d, again;

	assert_int_equal(dial_to(sb, PORT).err.code, ERR_PORT);
	serve(sb, "127.0.0.1");
	d = dial_to(sb, PORT);
	again = dial_to(sb, PORT);
	assert_int_equal(d.err.code, ERR_NONE);
	echoes(d.fd);
	echoes(again.fd);
	assert_int_equal(dial_to(sb, PORT + 1).err.code, ERR_PORT);
	assert_int_equal(dial_to(other, PORT).err.code, ERR_PORT);
	/* of the sandbox's network, which is not ours */
	assert_int_equal(network_of(d.fd), network_of(again.fd));
	assert_int_not_equal(network_of(d.fd), network_of(own));
	close(d.fd);
	close(again.fd);
	close(own);
}

static void test_ipv6(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = serve(sb, "::1");
	struct dialed d;

	if (r->done)
		skip(); /* there is none on this host */
	d = dial_to(sb, PORT);
	assert_int_equal(d.err.code, ERR_NONE);
	echoes(d.fd);
	close(d.fd);
}

static void test_many(void **state)
{
	struct sandbox *sb = make(NULL);
	static struct dialed all[MANY];

	serve(sb, "127.0.0.1");
	memset(all, 0, sizeof(all));
	for (size_t i = 0; i < MANY; i++)
		sandbox_dial_start(sb, PORT, on_done, &all[i]);
	for (size_t i = 0; i < MANY; i++) {
		wait_for(&all[i].done, "one of many");
		assert_int_equal(all[i].err.code, ERR_NONE);
	}
	for (size_t i = 0; i < MANY; i++) {
		echoes(all[i].fd);
		close(all[i].fd);
	}
}

/* Whenever it comes, nothing is told, and no descriptor is left (engine_teardown()). */
static void test_cancel(void **state)
{
	struct sandbox *sb = make(NULL);
	struct dialed d = { .fd = -1 }, later;

	serve(sb, "127.0.0.1");
	for (unsigned ms = 0; ms < 4; ms++) {
		struct dial *one = sandbox_dial_start(sb, PORT, on_done, &d);

		for (unsigned i = 0; i < ms && !d.done; i++)
			wait_ms(1);
		if (!d.done)
			sandbox_dial_cancel(one);
		else
			close(d.fd);
		d = (struct dialed){ .fd = -1 };
	}
	sandbox_dial_cancel(sandbox_dial_start(sb, PORT + 1, on_done, &d));
	later = dial_to(sb, PORT); /* the control, and what the warden answers behind the other */
	echoes(later.fd);
	close(later.fd);
	assert_false(d.done);
}

static void test_its_end(void **state)
{
	struct sandbox *sb = make(NULL);
	struct dialed d, late = { .fd = -1 };
	struct made *m;
	char byte;

	serve(sb, "127.0.0.1");
	d = dial_to(sb, PORT);
	echoes(d.fd);
	m = destroy_start(sb);
	sandbox_dial_start(sb, PORT, on_done, &late);
	wait_for(&late.done, "a connection to what ends");
	assert_int_equal(late.err.code, ERR_SANDBOX_NOT_FOUND);
	wait_for(&m->done, "the end");
	assert_true(recv(d.fd, &byte, 1, 0) <= 0);
	assert_int_equal(dial_to(sb, PORT).err.code, ERR_SANDBOX_NOT_FOUND);
	close(d.fd);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		engine_test(test_a_server), engine_test(test_ipv6),    engine_test(test_many),
		engine_test(test_cancel),   engine_test(test_its_end),
	};

	return ENGINE_MAIN(argc, argv, "dial", tests);
}
