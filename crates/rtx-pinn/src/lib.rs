//! Physics-informed networks: fields, operators, geometry and constraints
