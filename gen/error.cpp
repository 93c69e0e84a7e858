// The three kinds of error: their texts.
#include "gen/error.h"
#include <fmt/format.h>
#include <utility>

namespace kiln {

UserError::UserError(std::string subject_, std::string fact_, std::string remedy_)
    : Error(fmt::format("{}: {}; {}", subject_, fact_, remedy_)), subject(std::move(subject_)), fact(std::move(fact_)),
      remedy(std::move(remedy_)) {}

EnvironmentError::EnvironmentError(std::string subject_, std::string fact_, std::string remedy_, std::string log_, std::string path_)
    : Error(fmt::format("{}: {}; {}{}{}{}", subject_, fact_, remedy_, remedy_.ends_with(path_) ? "" : "\nsee " + path_,
                        log_.empty() ? "" : "\n", log_)),
      subject(std::move(subject_)), fact(std::move(fact_)), remedy(std::move(remedy_)), log(std::move(log_)), path(std::move(path_)) {}

InternalError::InternalError(const std::string& what) : Error(fmt::format("internal: {}; please report", what)) {}

} // namespace kiln
