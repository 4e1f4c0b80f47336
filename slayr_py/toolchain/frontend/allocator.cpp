// Memory for static executables, which have musl's C library: its malloc maps and unmaps every matrix of more than a
// hundred kilobytes, so that a gradient with 200 observations would take three to seven times as long. Here a freed block
// is kept for the next request of its size, and nothing is returned to the system before the end. There are no threads.
#include <cstdlib>  // defines __GLIBC__ where that is the C library
#if defined(__linux__) && !defined(__GLIBC__) && !defined(STAN_THREADS)
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

constexpr std::size_t kAlignment = 64;  // of every block, and the size of the header before it
constexpr int kClasses = 256;
constexpr std::size_t kChunk = std::size_t(1) << 20;

struct Block {
  int size_class;
  Block* next;
};

Block* freed[kClasses];
char* chunk_begin;
char* chunk_end;

// Four sizes between two powers of two, so that at most a fifth of a block is unused.
int class_of(std::size_t size) {
  if (size <= kAlignment)
    return 0;
  const int power = 63 - __builtin_clzll(size - 1);
  return 4 * (power - 6) + static_cast<int>(((size - 1) >> (power - 2)) & 3) + 1;
}

std::size_t size_of(int size_class) {
  if (size_class == 0)
    return kAlignment;
  const int power = (size_class - 1) / 4 + 6;
  return (std::size_t(4 + (size_class - 1) % 4 + 1) << power) / 4;
}

Block* carve(int size_class) {
  const std::size_t size = kAlignment + (size_of(size_class) + kAlignment - 1) / kAlignment * kAlignment;
  if (size > static_cast<std::size_t>(chunk_end - chunk_begin)) {
    const std::size_t length = (size + kChunk - 1) / kChunk * kChunk;
    void* mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      return nullptr;
    chunk_begin = static_cast<char*>(mapped);
    chunk_end = chunk_begin + length;
  }
  Block* block = reinterpret_cast<Block*>(chunk_begin);
  chunk_begin += size;
  return block;
}

Block* header(void* memory) { return reinterpret_cast<Block*>(static_cast<char*>(memory) - kAlignment); }

void* allocate(std::size_t size) {
  if (size > PTRDIFF_MAX / 2) {
    errno = ENOMEM;
    return nullptr;
  }
  const int size_class = class_of(size);
  Block* block = freed[size_class];
  if (block) {
    freed[size_class] = block->next;
  } else {
    block = carve(size_class);
    if (!block) {
      errno = ENOMEM;
      return nullptr;
    }
    block->size_class = size_class;
  }
  return reinterpret_cast<char*>(block) + kAlignment;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) { return allocate(size); }

void free(void* memory) {
  if (!memory)
    return;
  Block* block = header(memory);
  block->next = freed[block->size_class];
  freed[block->size_class] = block;
}

void* calloc(std::size_t count, std::size_t size) {
  std::size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes))
    bytes = SIZE_MAX;
  void* memory = allocate(bytes);
  return memory ? std::memset(memory, 0, bytes) : nullptr;
}

void* realloc(void* memory, std::size_t size) {
  if (!memory)
    return allocate(size);
  const std::size_t before = size_of(header(memory)->size_class);
  if (size <= before)
    return memory;
  void* larger = allocate(size);
  if (larger) {
    std::memcpy(larger, memory, before);
    free(memory);
  }
  return larger;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (alignment <= kAlignment)
    return allocate(size);
  errno = ENOMEM;
  return nullptr;
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = aligned_alloc(alignment, size);
  return *memory ? 0 : ENOMEM;
}

void* memalign(std::size_t alignment, std::size_t size) { return aligned_alloc(alignment, size); }

std::size_t malloc_usable_size(void* memory) { return memory ? size_of(header(memory)->size_class) : 0; }
}
#endif
