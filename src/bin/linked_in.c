#include "bin/libraries.h"

/* The static program is linked with all that others load: there are no rows for library_load(). */
void libraries_init(void)
{
}
