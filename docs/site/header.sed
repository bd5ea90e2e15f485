# Own headers only: with the standard library's in it, no graph of includes can be read.
s/^#include <.*//
