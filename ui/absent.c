/* In place of the page, where there is no Node.js to build it. */
#include "door/page/internal.h"

const struct page_file page_files[1];
const size_t page_files_n = 0;
const char *const page_html = NULL;
