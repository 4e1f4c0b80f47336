// The whole front end as one translation unit: its files use the same headers and templates of Stan, and compiling them
// one by one takes half as long again.
#include "allocator.cpp"
#include "arguments.cpp"
#include "files.cpp"
#include "main.cpp"
#include "mode.cpp"
#include "pathfinder.cpp"
#include "quantities.cpp"
#include "sample.cpp"
#include "stan_csv.cpp"
