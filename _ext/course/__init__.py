"""The chapters as a course: their data, the lists made from them, the downloads, the whole."""
