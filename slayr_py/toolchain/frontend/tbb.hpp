#pragma once
// The parts of Intel's Threading Building Blocks that Stan uses. Without STAN_THREADS there is one thread, so that loops
// run in order and the library is not needed: this header defines the include guards of its headers, which take seconds
// to parse and, in the version that Stan 2.35 has, are refused by recent compilers.
#ifdef STAN_THREADS
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#else
#define __TBB_blocked_range_H
#define __TBB_concurrent_queue_H
#define __TBB_concurrent_unordered_map_H
#define __TBB_concurrent_vector_H
#define __TBB_global_control_H
#define __TBB_parallel_for_H
#define __TBB_parallel_invoke_H
#define __TBB_parallel_reduce_H
#define __TBB_partitioner_H
#define __TBB_task_arena_H
#define __TBB_task_group_H
#define __TBB_task_scheduler_observer_H
#define __TBB_tbb_stddef_H
#define TBB_INTERFACE_NEW

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace tbb {

class split {};
class simple_partitioner {};

template <typename T>
class blocked_range {
  T begin_, end_;

 public:
  blocked_range(T begin, T end, std::size_t = 1) : begin_(begin), end_(end) {}
  T begin() const { return begin_; }
  T end() const { return end_; }
  bool empty() const { return !(begin_ < end_); }
  std::size_t size() const { return end_ - begin_; }
};

template <typename Range, typename Body, typename... Partitioner>
void parallel_for(const Range& range, const Body& body, Partitioner&&...) {
  if (!range.empty()) body(range);
}

template <typename Range, typename Body, typename... Partitioner>
void parallel_reduce(const Range& range, Body& body, Partitioner&&...) {
  if (!range.empty()) body(range);
}

template <typename Range, typename Body, typename... Partitioner>
void parallel_deterministic_reduce(const Range& range, Body& body, Partitioner&&...) {
  if (!range.empty()) body(range);
}

namespace this_task_arena {
template <typename F>
auto isolate(const F& f) -> decltype(f()) {
  return f();
}
}  // namespace this_task_arena

class task_arena {
 public:
  task_arena(int, unsigned) {}
  void initialize() {}
};

class global_control {
 public:
  enum parameter { max_allowed_parallelism };
  global_control(parameter, std::size_t) {}
};

class task_scheduler_observer {
 public:
  virtual ~task_scheduler_observer() = default;
  virtual void on_scheduler_entry(bool) {}
  virtual void on_scheduler_exit(bool) {}
  void observe(bool) {}
};

template <typename... Parameters>
using concurrent_unordered_map = std::unordered_map<Parameters...>;

template <typename T>
using concurrent_vector = std::vector<T>;

}  // namespace tbb
#endif
