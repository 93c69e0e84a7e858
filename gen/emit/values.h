// ValueEmitter: the device text of values, each once where it is first needed.
#pragma once
#include "gen/plan/passes.h"
#include "gen/plan/target.h"
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {

std::string_view device_type(DType type); // "f16", "e4m3fn", "bool"

// The text of one pass: lines of the kernel before it, and lines of the body that it calls for every chunk.
struct PassText {
  std::string before, inside;
};

// A value below Extent::element is an f32 (or bool, or i32) of the lane. An element value is a chunk: of its memory type when it is
// an input or a cast, else an f32 vector (or a mask).
class ValueEmitter {
public:
  // `space` is the object of the kernel that walks its elements and loads inputs of less: "row", "flat".
  ValueEmitter(const Body& body, const Target& target, const std::vector<Pass>& passes, std::string space);
  // Lambdas that outlive the lane's bools keep them: as Truth of templates/common/vec.h, not as bool.
  void let_lambdas_keep_bools() { lane_truth_ = "Truth"; }

  // An input that a variable of the kernel has already.
  void take_loaded(const std::string& input, std::string variable) { loaded_[input] = std::move(variable); }
  const std::string* loaded(const std::string& input) const { return loaded_.contains(input) ? &loaded_.at(input) : nullptr; }

  std::string load_lane_inputs(); // loads of scalar and row inputs
  PassText pass_body(int pass);   // adds accumulators that the pass fills
  const std::vector<std::string>& accumulators(int pass) const { return accumulators_[static_cast<std::size_t>(pass)]; }
  // Those that find a column, of row_argmax and row_argmin; and those that find several, of row_top.
  const std::vector<std::string>& finders(int pass) const { return finders_[static_cast<std::size_t>(pass)]; }
  const std::vector<std::string>& running(int pass) const { return running_[static_cast<std::size_t>(pass)]; }
  const std::vector<std::string>& rankings(int pass) const { return rankings_[static_cast<std::size_t>(pass)]; }
  std::string stream_name(int index) const { return kept_chunk(index); } // the name, inside a pass, of a value that it reads from memory
  std::string section_outputs(int level);                                // row outputs that can be had once `level` reductions are complete
  // `base`, or a longer name when the spec uses that one itself.
  std::string unique_name(std::string base) const;
  std::string kept_chunk(int index) const; // the name, inside a pass, of a value that an earlier pass kept

private:
  struct Factor;
  const Value& value(const Expr& expr) const { return body_.value(expr); }
  int index_of(const Expr& expr) const { return body_.index_of(expr); }
  bool is_lane(const Expr& expr) const { return value(expr).extent != Extent::element; }
  bool has_memory_type(const Expr& expr) const; // an element input or cast, or kept so
  bool is_f16_chunk(const Expr& expr) const;
  std::string_view lane_type(const Expr& expr) const; // of a variable
  std::string variable(const Expr& expr) const;

  std::vector<std::string> indices() const;
  void load_of_row(const Value& value);
  std::string row_of_iota(const Value& value) const;
  std::string condition(const TensorPlan& output) const; // under which it is stored: "if (...) ", or nothing
  std::string lane(const Expr& expr);                    // an f32 or bool of the lane
  std::string chunk(const Expr& expr);                   // the chunk in the value's own representation
  std::string numbers(const Expr& expr);                 // an f32 vector, or an f32 for lane values
  std::string integers(const Expr& expr);                // an i32 vector, or an i32 for lane values
  std::string stored_number(const Expr& expr);           // of a lane value, 0 or 1 for bool
  std::string truth(const Expr& expr);                   // a mask, or a bool for lane values
  std::string vector(const Expr& expr);                  // always an f32 vector
  std::string stored(const Expr& expr, DType type);      // a chunk of memory elements

  std::string compute_lane(const Expr& expr);
  std::string compute_chunk(const Expr& expr);
  std::string cast_chunk(const Expr& expr);
  static std::string position(const Expr& expr, std::int64_t partner);
  std::string scaled(const Expr& expr);
  std::string group_reduction(const Expr& expr);
  std::string operation(const Expr& expr);
  std::string call(const Expr& expr, const std::vector<std::string>& operands);
  std::string product(const Expr& expr);
  void collect_factors(const Expr& expr, bool root, std::vector<Factor>& factors);
  std::string reduction_of_row(const Expr& expr);
  void rank_in_pass(const Expr& expr, PassText& text);
  std::string scan(const Expr& expr);
  bool sums_pieces(const Value& v) const; // a running sum of a wide row
  void scan_pieces_in_pass(const Expr& expr, PassText& text);
  void reduce_in_pass(const Expr& reduction);
  std::string line(std::string_view type, const Expr& expr, const std::string& text);

  const Body& body_;
  const Target& target_;
  const std::vector<Pass>& passes_;
  std::string walker_;
  std::vector<bool> feeds_sum_; // of values: a product whose only use is a sum, which the compiler contracts to fma
  std::unordered_map<const Node*, std::string> known_in_kernel_, known_in_pass_; // the names of values
  std::string* outside_ = nullptr;                                               // receives lines of the kernel
  std::string* inside_ = nullptr;                                                // receives lines of the pass; null outside passes
  std::string* states_ = nullptr;                                                // receives what a pass carries from chunk to chunk
  int states_count_ = 0;
  std::unordered_map<std::string, std::string> loaded_;                               // by input: the variable
  std::string_view lane_truth_ = "bool";                                              // the type of a bool of the lane
  std::vector<std::vector<std::string>> accumulators_, finders_, rankings_, running_; // by pass
};

} // namespace kiln
