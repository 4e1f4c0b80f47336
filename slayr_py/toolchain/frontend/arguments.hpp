#pragma once
// CmdStan's command line as one table: what a program accepts, prints, saves and explains all comes from `argument_table`.
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <vector>

namespace frontend {

// The command line cannot be understood; the message names the argument and the way out.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

enum class Kind {
  group,    // a word that opens its subarguments: `adapt`
  choice,   // name=alternative, the alternative opening subarguments of its own: `algorithm=hmc`
  word,     // an alternative without subarguments: `diag_e`
  refused,  // an alternative CmdStan has and this front end has not; `help` says why
  integer,
  real,
  boolean,
  text
};

// Open or closed ends of a numeric range, and the words a person reads for it.
struct Range {
  double low, high;
  bool low_included, high_included;
  std::string in_words;
};

struct Argument {
  Kind kind;
  std::string name;
  std::string help;
  std::string fallback;               // the default, as printed
  Range range;
  std::vector<Argument> children;     // subarguments of a group, alternatives of a choice
  std::string value;                  // as printed: the fallback until the command line says otherwise
  bool given = false;

  bool is_default() const { return value == fallback; }
  const Argument& operator[](const std::string& child) const;
  Argument& operator[](const std::string& child);
  const Argument& chosen() const { return (*this)[value]; }
  bool chose(const std::string& alternative) const { return value == alternative; }

  long long as_integer() const;
  double as_real() const;
  bool as_boolean() const { return value == "true"; }
};

// The whole tree with its defaults. `threads` is the default of num_threads.
Argument argument_table(int threads);

// Reads the words of a command line into the tree.
// Returns false when the words asked for help, which is then already printed to `out`.
bool parse(Argument& root, const std::vector<std::string>& words, const std::string& program, std::ostream& out);

// `name = value (Default)` lines, indented by depth, each given to `line`.
template <typename Line>
void print(const Argument& argument, int depth, Line&& line) {
  const std::string indent(2 * depth, ' ');
  switch (argument.kind) {
    case Kind::word:
    case Kind::refused:
      return;
    case Kind::group:
      line(indent + argument.name);
      for (const Argument& child : argument.children)
        print(child, depth + 1, line);
      return;
    default:
      line(indent + argument.name + " = " + argument.value + (argument.is_default() ? " (Default)" : ""));
      if (argument.kind == Kind::choice)
        print(argument.chosen(), depth + 1, line);
  }
}

}  // namespace frontend
