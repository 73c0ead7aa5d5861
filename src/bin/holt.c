#include "base/log.h"
#include "bin/libraries.h"
#include "cli/common/verb.h"

int main(int argc, char **argv)
{
	const struct cli cli = { .hooks = NULL };

	log_init("holt");
	libraries_init();
	return cli_main(&cli, argc, argv);
}
