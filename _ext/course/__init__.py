"""The chapters as a course: their data, and the lists made from them."""
